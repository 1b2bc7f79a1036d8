// SPDX-License-Identifier: Apache-2.0
#include "core/cuda/elementwise/chain_kernel.h"

#include <algorithm>
#include <numeric>

#include "core/base/status.h"
#include "core/cuda/call.h"
#include "core/cuda/elementwise/program.h"
#include "core/device/plan/broadcast.h"

namespace onward::cuda {
namespace {

absl::StatusOr<Type> KnownType(DType dtype) {
  const std::optional<Type> type = TypeOf(dtype);
  if (!type.has_value()) return absl::UnimplementedError("a type that chains do not have");
  return *type;
}

absl::Status SetStrides(absl::Span<const ValueSpec> inputs, const Shape& shape,
                        ChainProgram* program) {
  std::vector<Shape> shapes;
  for (const ValueSpec& input : inputs) shapes.push_back(*input.shape);
  shapes.push_back(shape);
  ONWARD_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanBroadcast(shapes));
  if (plan.shape != shape) return absl::UnimplementedError("operands larger than the result");
  const int outer = static_cast<int>(plan.outer.size());
  if (outer + 1 > kMaxChainRank) return absl::UnimplementedError("too many dimensions");
  program->elements = plan.elements;
  program->rank = outer + 1;
  std::copy(plan.outer.begin(), plan.outer.end(), program->dims);
  program->dims[outer] = plan.run;
  for (int k = 0; k < program->inputs; ++k) {
    std::copy(plan.strides[k].begin(), plan.strides[k].end(), program->strides[k]);
    program->strides[k][outer] = plan.repeats[k] ? 0 : 1;
  }
  return absl::OkStatus();
}

// A result may take the place of an input that no later step reads.
void AddInPlace(absl::Span<const ChainStep> steps, absl::Span<const ValueSpec> inputs,
                const Shape& shape, absl::Span<const int> positions, Kernel* kernel) {
  for (int k = 0; k < static_cast<int>(inputs.size()); ++k) {
    if (*inputs[k].shape != shape) continue;
    size_t last = 0;
    for (size_t s = 0; s < steps.size(); ++s) {
      if (std::count(steps[s].operands.begin(), steps[s].operands.end(), k) > 0) last = s;
    }
    for (size_t s = last; s < steps.size(); ++s) {
      if (steps[s].output >= 0 && steps[s].dtype == inputs[k].dtype) {
        kernel->in_place.emplace_back(steps[s].output, positions[k]);
      }
    }
  }
}

}  // namespace

std::optional<Type> TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat: return Type::kFloat;
    case DType::kDouble: return Type::kDouble;
    case DType::kFloat16: return Type::kHalf;
    case DType::kBFloat16: return Type::kBFloat16;
    case DType::kBool: return Type::kBool;
    case DType::kInt8: return Type::kInt8;
    case DType::kInt16: return Type::kInt16;
    case DType::kInt32: return Type::kInt32;
    case DType::kInt64: return Type::kInt64;
    case DType::kUint8: return Type::kUint8;
    case DType::kUint16: return Type::kUint16;
    case DType::kUint32: return Type::kUint32;
    case DType::kUint64: return Type::kUint64;
    default: return std::nullopt;
  }
}

absl::StatusOr<Kernel> ChainKernel(absl::Span<const ChainStep> steps,
                                   absl::Span<const ValueSpec> inputs, const Shape& shape,
                                   std::vector<int> positions) {
  if (inputs.size() > kMaxChainInputs) return absl::UnimplementedError("too many operands");
  ProgramBuilder builder;
  std::vector<ProgramBuilder::Source> sources, results;
  for (const ValueSpec& input : inputs) {
    ONWARD_ASSIGN_OR_RETURN(const Type type, KnownType(input.dtype));
    sources.push_back(builder.AddInput(type));
  }
  for (const ChainStep& step : steps) {
    std::vector<ProgramBuilder::Source> operands;
    for (int from : step.operands) operands.push_back(from < 0 ? results[~from] : sources[from]);
    ONWARD_ASSIGN_OR_RETURN(const Type type, KnownType(step.dtype));
    ONWARD_ASSIGN_OR_RETURN(const ProgramBuilder::Source result,
                            builder.Add(*step.op, operands, type));
    results.push_back(result);
    if (step.output >= kMaxChainOutputs) return absl::UnimplementedError("too many results");
    if (step.output >= 0) builder.Write(result, step.output);
  }
  ChainProgram program = builder.Finish();
  ONWARD_RETURN_IF_ERROR(SetStrides(inputs, shape, &program));
  if (positions.empty()) {
    positions.resize(inputs.size());
    std::iota(positions.begin(), positions.end(), 0);
  }
  Kernel kernel;
  kernel.infallible = true;
  AddInPlace(steps, inputs, shape, positions, &kernel);
  auto prepared = std::make_shared<const ChainProgram>(program);
  kernel.run = [prepared, positions = std::move(positions)](const KernelCall& call) {
    ChainProgram bound = *prepared;
    for (int k = 0; k < bound.inputs; ++k) bound.input[k] = call.inputs[positions[k]]->raw();
    for (size_t k = 0; k < call.outputs.size(); ++k) bound.output[k] = call.outputs[k]->raw();
    return StatusOf(LaunchChain(bound, StreamOf(call)), "cannot run element-wise operators");
  };
  return kernel;
}

}  // namespace onward::cuda
