// SPDX-License-Identifier: Apache-2.0
// How the threads of the CPU divide a recurrence.
#include <algorithm>

#include "core/ops/rnn/rnn.h"

namespace onward {
namespace {

// Multiplications of the whole recurrence that are worth a second thread, and
// rows of the batch that are worth reading the weights for.
constexpr double kParallelWork = 1 << 18;
constexpr int64_t kTaskRows = 4;

}  // namespace

bool IsSmall(const RnnPlan& plan) {
  return static_cast<double>(plan.steps) * static_cast<double>(plan.batch) *
             static_cast<double>(plan.gates * plan.hidden) * static_cast<double>(plan.hidden) <
         kParallelWork;
}

std::vector<RnnTask> RnnTasks(const RnnPlan& plan) {
  int64_t parts = 1;
  if (!IsSmall(plan)) {
    const int64_t wanted = (Threads() + plan.directions - 1) / plan.directions;
    parts = std::clamp<int64_t>(plan.batch / kTaskRows, 1, wanted);
  }
  std::vector<RnnTask> tasks;
  for (int64_t p = 0; p < parts; ++p) {
    for (int64_t d = 0; d < plan.directions; ++d) {
      tasks.push_back({d, plan.batch * p / parts, plan.batch * (p + 1) / parts});
    }
  }
  return tasks;
}

template <typename T>
void SwapFirstAxes(const T* from, int64_t first, int64_t second, int64_t n, T* to) {
  constexpr int64_t kGrain = 16384;  // elements
  const int64_t row = std::max<int64_t>(first * n, 1);
  ParallelFor(second, kGrain / row + 1, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      for (int64_t i = 0; i < first; ++i) {
        std::copy_n(from + (i * second + j) * n, n, to + (j * first + i) * n);
      }
    }
  });
}

template void SwapFirstAxes(const float*, int64_t, int64_t, int64_t, float*);
template void SwapFirstAxes(const double*, int64_t, int64_t, int64_t, double*);

}  // namespace onward
