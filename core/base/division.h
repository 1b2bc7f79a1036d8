// SPDX-License-Identifier: Apache-2.0
#ifndef ONWARD_CORE_BASE_DIVISION_H_
#define ONWARD_CORE_BASE_DIVISION_H_

#include <cstdint>

namespace onward {

// a / b rounded up, of a >= 0 and b > 0.
constexpr int64_t CeilDiv(int64_t a, int64_t b) { return a / b + (a % b == 0 ? 0 : 1); }

}  // namespace onward

#endif  // ONWARD_CORE_BASE_DIVISION_H_
