// SPDX-License-Identifier: Apache-2.0
// Random orders of examples.
#ifndef ONWARD_DATA_PERMUTATION_H_
#define ONWARD_DATA_PERMUTATION_H_

#include <cstdint>
#include <vector>

namespace onward {

// The numbers 0 to count-1 in the order of epoch `epoch`. The same on every
// machine and in every version: a checkpoint relies on it.
std::vector<int64_t> Permutation(int64_t count, uint64_t seed, int64_t epoch);

}  // namespace onward

#endif  // ONWARD_DATA_PERMUTATION_H_
