// SPDX-License-Identifier: Apache-2.0
// A number of rows that is known at run time, as a type: kernels keep that many sums in registers.
#ifndef ONWARD_CORE_OPS_CPU_WITH_ROWS_H_
#define ONWARD_CORE_OPS_CPU_WITH_ROWS_H_

#include <type_traits>

namespace onward {

// Calls f(std::integral_constant<int, rows>()), 1 <= rows <= kMost.
template <int kMost, typename F>
inline void WithRows(int rows, const F& f) {
  if constexpr (kMost > 1) {
    if (rows < kMost) return WithRows<kMost - 1>(rows, f);
  }
  f(std::integral_constant<int, kMost>());
}

}  // namespace onward

#endif  // ONWARD_CORE_OPS_CPU_WITH_ROWS_H_
