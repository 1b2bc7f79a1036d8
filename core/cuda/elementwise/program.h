// SPDX-License-Identifier: Apache-2.0
// The steps of a program, from operators of the runtime: operators of many operands or of mixed
// types become several steps.
#ifndef ONWARD_CORE_CUDA_ELEMENTWISE_PROGRAM_H_
#define ONWARD_CORE_CUDA_ELEMENTWISE_PROGRAM_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/cuda/elementwise/chain.h"
#include "core/device/kernel.h"

namespace onward::cuda {

class ProgramBuilder {
 public:
  // What a step reads: input k of the chain, or ~k, step k of the program.
  struct Source {
    int from;
    Type type;
  };

  Source AddInput(Type type);
  // The operator's result.
  absl::StatusOr<Source> Add(const Pointwise& op, absl::Span<const Source> operands, Type result);
  // Writes a step's result to an output.
  void Write(const Source& result, int output);

  // Without strides and pointers.
  ChainProgram Finish() const;

 private:
  Source Emit(Op op, absl::Span<const Source> operands, Type result,
              absl::Span<const double> parameters = {});
  Source Fold(Op op, absl::Span<const Source> operands, Type result);
  Source Clip(absl::Span<const Source> operands, const Pointwise& op, Type result);
  Source Power(const Source& base, const Source& exponent, Type result);

  std::vector<Type> inputs_;
  std::vector<Step> steps_;
};

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_ELEMENTWISE_PROGRAM_H_
