// SPDX-License-Identifier: Apache-2.0
#include "core/graph/random.h"

namespace onward {

bool IsRandom(const Node& node) {
  if (!node.domain.empty()) return false;
  for (const char* op : {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
                         "Bernoulli", "Multinomial", "Dropout"}) {
    if (node.op_type == op) return true;
  }
  return false;
}

}  // namespace onward
