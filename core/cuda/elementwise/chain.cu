// SPDX-License-Identifier: Apache-2.0
#include "core/cuda/elementwise/chain.h"
#include "core/cuda/elementwise/floating.h"
#include "core/cuda/elementwise/integer.h"
#include "core/cuda/elementwise/value.h"
#include "core/cuda/grid.h"
#include "core/cuda/position.h"

namespace onward::cuda {
namespace {

__device__ int BitsOf(Type type) {
  switch (type) {
    case Type::kInt8:
    case Type::kUint8: return 8;
    case Type::kInt16:
    case Type::kUint16: return 16;
    case Type::kInt32:
    case Type::kUint32: return 32;
    default: return 64;
  }
}

using At = Position<kMaxChainRank>;

// Everything is a float.
__global__ void FloatChain(const ChainProgram program) {
  float results[kMaxChainSteps];
  for (int64_t i = FirstElement(); i < program.elements; i += ElementStep()) {
    const At position(program.dims, program.rank, program.elements, i);
    const auto operand = [&](int from) {
      if (from < 0) return results[~from];
      return LoadFloat(program.input_type[from], program.input[from],
                       position.Offset(program.strides[from], program.rank));
    };
    for (int s = 0; s < program.steps; ++s) {
      const Step& step = program.step[s];
      const float a = operand(step.operands[0]);
      const float b = step.op < Op::kAdd ? 0.0f : operand(step.operands[1]);
      const float c = step.op < Op::kWhere ? 0.0f : operand(step.operands[2]);
      const float result =
          Rounded(step.result, Evaluate(step.op, a, b, c, static_cast<float>(step.parameters[0]),
                                        static_cast<float>(step.parameters[1])));
      if (step.keeps) results[s] = result;
      if (step.output >= 0) StoreFloat(step.result, program.output[step.output], i, result);
    }
  }
}

__device__ Value EvaluateStep(const Step& step, Value a, Value b, Value c) {
  if (step.op == Op::kWhere) return a.i != 0 ? b : c;
  const double p = step.parameters[0], q = step.parameters[1];
  switch (step.domain) {
    case Domain::kFloat:
      return FromFloat(step.result, Evaluate(step.op, a.f, b.f, c.f, static_cast<float>(p),
                                             static_cast<float>(q)));
    case Domain::kDouble: return FromDouble(step.result, Evaluate(step.op, a.d, b.d, c.d, p, q));
    case Domain::kSigned:
      return FromInteger(step.result, EvaluateInteger(step.op, a.i, b.i, BitsOf(step.result)));
    default:
      return FromInteger(step.result,
                         EvaluateInteger(step.op, static_cast<uint64_t>(a.i),
                                         static_cast<uint64_t>(b.i), BitsOf(step.result)));
  }
}

// Any types.
__global__ void ValueChain(const ChainProgram program) {
  Value results[kMaxChainSteps];
  for (int64_t i = FirstElement(); i < program.elements; i += ElementStep()) {
    const At position(program.dims, program.rank, program.elements, i);
    const auto operand = [&](int from) {
      if (from < 0) return results[~from];
      return Load(program.input_type[from], program.input[from],
                  position.Offset(program.strides[from], program.rank));
    };
    for (int s = 0; s < program.steps; ++s) {
      const Step& step = program.step[s];
      const Value a = operand(step.operands[0]);
      const Value b = step.op < Op::kAdd ? a : operand(step.operands[1]);
      const Value c = step.op < Op::kWhere ? a : operand(step.operands[2]);
      const Value result = EvaluateStep(step, a, b, c);
      if (step.keeps) results[s] = result;
      if (step.output >= 0) Store(step.result, program.output[step.output], i, result);
    }
  }
}

}  // namespace

cudaError_t LaunchChain(const ChainProgram& program, cudaStream_t stream) {
  if (program.elements == 0) return cudaSuccess;
  const Geometry grid = LinearGrid(program.elements);
  return program.in_float ? Launch(FloatChain, grid, stream, program)
                          : Launch(ValueChain, grid, stream, program);
}

}  // namespace onward::cuda
