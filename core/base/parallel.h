// SPDX-License-Identifier: Apache-2.0
// Loops over the OpenMP team that oneDNN also uses.
#ifndef ONWARD_CORE_BASE_PARALLEL_H_
#define ONWARD_CORE_BASE_PARALLEL_H_

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace onward {

inline int Threads() { return omp_get_max_threads(); }
inline void SetThreads(int n) { omp_set_num_threads(n); }

// Calls body(begin, end) on disjoint ranges that cover [0, n). Ranges depend on
// n, grain and the team size alone, so results repeat bit for bit. Work smaller
// than `grain` stays on the calling thread.
template <typename Body>
void ParallelFor(int64_t n, int64_t grain, const Body& body) {
  if (n <= 0) return;
  const int64_t parts =
      omp_in_parallel()
          ? 1
          : std::min<int64_t>(Threads(), (n + grain - 1) / std::max<int64_t>(grain, 1));
  if (parts <= 1) {
    body(int64_t{0}, n);
    return;
  }
#pragma omp parallel for num_threads(static_cast <int>(parts)) schedule(static, 1)
  for (int64_t p = 0; p < parts; ++p) body(n * p / parts, n * (p + 1) / parts);
}

}  // namespace onward

#endif  // ONWARD_CORE_BASE_PARALLEL_H_
