// SPDX-License-Identifier: Apache-2.0
// What the kernels of RNN, GRU and LSTM, forward and backward, have in common.
#ifndef ONWARD_CORE_OPS_RNN_RNN_H_
#define ONWARD_CORE_OPS_RNN_RNN_H_

#include <cstdint>
#include <vector>

#include "core/base/parallel.h"
#include "core/device/kernel.h"
#include "core/device/plan/rnn.h"
#include "core/ops/rnn/rnn_activation.h"

namespace onward {

// Whether the recurrence is not worth a second thread.
bool IsSmall(const RnnPlan& plan);

// Whole batches of rows, so that nothing is shared between threads within the
// recurrence.
struct RnnTask {
  int64_t direction, begin, end;  // rows [begin, end) of the batch
};
std::vector<RnnTask> RnnTasks(const RnnPlan& plan);

// f(task) for each of them, on the threads that the work is worth.
template <typename F>
void ForRnnTasks(const RnnPlan& plan, const F& f) {
  const std::vector<RnnTask> tasks = RnnTasks(plan);
  const auto count = static_cast<int64_t>(tasks.size());
  ParallelFor(count, IsSmall(plan) ? count : 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(tasks[i]);
  });
}

// An input or output of a call; null where it is omitted.
template <typename T>
const T* InputOrNull(const KernelCall& call, int i) {
  const bool given = i < static_cast<int>(call.inputs.size()) && call.inputs[i] != nullptr;
  return given ? call.inputs[i]->data<T>() : nullptr;
}
template <typename T>
T* OutputOrNull(const KernelCall& call, int i) {
  const bool given = i < static_cast<int>(call.outputs.size()) && call.outputs[i] != nullptr;
  return given ? call.outputs[i]->data<T>() : nullptr;
}

// [B, T, n] -> [T, B, n], and back with the first two sizes exchanged.
template <typename T>
void SwapFirstAxes(const T* from, int64_t first, int64_t second, int64_t n, T* to);

void RegisterRnnGradKernels(KernelTable& table);

}  // namespace onward

#endif  // ONWARD_CORE_OPS_RNN_RNN_H_
