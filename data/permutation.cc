// SPDX-License-Identifier: Apache-2.0
#include "data/permutation.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "data/random.h"

namespace onward {

std::vector<int64_t> Permutation(int64_t count, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(std::max<int64_t>(count, 0));
  std::iota(order.begin(), order.end(), 0);
  Random random(seed, static_cast<uint64_t>(epoch));
  for (int64_t i = count - 1; i > 0; --i) {
    std::swap(order[i], order[random.Below(static_cast<uint64_t>(i) + 1)]);
  }
  return order;
}

}  // namespace onward
