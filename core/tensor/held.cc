// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/held.h"

#include <string>

namespace onward {

size_t UncountedBytes(const Value& value) {
  size_t bytes = 0;
  if (const Tensor* t = value.tensor(); t != nullptr && t->dtype() == DType::kString) {
    for (const std::string& text : t->values<std::string>()) bytes += text.size();
  }
  if (const Sequence* sequence = value.sequence()) {
    bytes += sequence->items.size() * sizeof(Value);
    if (sequence->element.leaf() != DType::kString) return bytes;
    for (const Value& item : sequence->items) bytes += UncountedBytes(item);
  }
  return bytes;
}

}  // namespace onward
