// SPDX-License-Identifier: Apache-2.0
// The work of a plan's steps, from their operators and shapes alone.
#ifndef ONWARD_BENCHMARKS_COST_H_
#define ONWARD_BENCHMARKS_COST_H_

#include "core/runtime/plan/plan.h"

namespace onward {

// Multiplications and additions of the plain algorithm:
//   Conv and its gradients    2 * elements(Y) * elements(W) / M
//   MatMul, Gemm              2 * m * n * k, per matrix
//   RNN, GRU, LSTM            2 * steps * batch * (elements(W) + elements(R)); twice backwards
// and 0 for everything else and for shapes known at run time only.
double Flops(const Plan& plan, const PlanStep& step);

// What has to be read and written once: inputs and outputs, without inputs that
// only lend their shape; of what is sliced or gathered, as much as comes out.
double Bytes(const Plan& plan, const PlanStep& step);

}  // namespace onward

#endif  // ONWARD_BENCHMARKS_COST_H_
