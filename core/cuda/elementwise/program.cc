// SPDX-License-Identifier: Apache-2.0
#include "core/cuda/elementwise/program.h"

#include <algorithm>

#include "absl/status/statusor.h"

namespace onward::cuda {
namespace {

using Source = ProgramBuilder::Source;

bool IsFloatOfTheChain(Type type) { return type <= Type::kBFloat16; }
bool IsInteger(Type type) { return type > Type::kDouble; }

Domain DomainOf(Type type) {
  if (IsFloatOfTheChain(type)) return Domain::kFloat;
  if (type == Type::kDouble) return Domain::kDouble;
  return type >= Type::kUint8 || type == Type::kBool ? Domain::kUnsigned : Domain::kSigned;
}

// Sums and the like are rounded to a 16-bit type at their end alone.
Type Unrounded(Type type) { return IsFloatOfTheChain(type) ? Type::kFloat : type; }

}  // namespace

Source ProgramBuilder::AddInput(Type type) {
  inputs_.push_back(type);
  return {static_cast<int>(inputs_.size()) - 1, type};
}

Source ProgramBuilder::Emit(Op op, absl::Span<const Source> operands, Type result,
                            absl::Span<const double> parameters) {
  Step step;
  step.op = op;
  step.domain = DomainOf(operands[0].type);
  step.result = result;
  for (size_t i = 0; i < operands.size(); ++i) {
    step.operands[i] = static_cast<int8_t>(operands[i].from);
    if (operands[i].from < 0) steps_[~operands[i].from].keeps = true;
  }
  for (size_t i = 0; i < parameters.size(); ++i) step.parameters[i] = parameters[i];
  steps_.push_back(step);
  return {~(static_cast<int>(steps_.size()) - 1), result};
}

Source ProgramBuilder::Fold(Op op, absl::Span<const Source> operands, Type result) {
  Source folded = operands[0];
  for (size_t i = 1; i < operands.size(); ++i) {
    const bool last = i + 1 == operands.size();
    folded = Emit(op, {folded, operands[i]}, last ? result : Unrounded(result));
  }
  return folded;
}

// Min(max, Max(x, min)) with either bound optional.
Source ProgramBuilder::Clip(absl::Span<const Source> operands, const Pointwise& op, Type result) {
  Source clipped = operands[0];
  size_t next = 1;
  if (op.parameters[0] != 0) clipped = Emit(Op::kMax, {clipped, operands[next++]}, result);
  if (op.parameters[1] != 0) clipped = Emit(Op::kMin, {operands[next], clipped}, result);
  return clipped;
}

// Integers stay such; numbers of two types meet in double, and go to 16 bits by way of float.
Source ProgramBuilder::Power(const Source& base, const Source& exponent, Type result) {
  if (IsInteger(base.type) && IsInteger(exponent.type)) {
    const bool has_sign = DomainOf(exponent.type) == Domain::kSigned;
    return Emit(has_sign ? Op::kPow : Op::kPowUnsigned, {base, exponent}, result);
  }
  if (base.type == exponent.type) return Emit(Op::kPow, {base, exponent}, result);
  const Source power = Emit(
      Op::kPow,
      {Emit(Op::kIdentity, {base}, Type::kDouble), Emit(Op::kIdentity, {exponent}, Type::kDouble)},
      IsFloatOfTheChain(result) ? Type::kFloat : result);
  const bool narrow = result == Type::kHalf || result == Type::kBFloat16;
  return narrow ? Emit(Op::kIdentity, {power}, result) : power;
}

absl::StatusOr<Source> ProgramBuilder::Add(const Pointwise& op, absl::Span<const Source> operands,
                                           Type result) {
  // Each operand is at most one step, and so is what comes around them.
  if (steps_.size() + operands.size() + 3 > kMaxChainSteps) {
    return absl::UnimplementedError("a long chain");
  }
  const Op code = static_cast<Op>(op.code);
  switch (code) {
    case Op::kMin:
    case Op::kMax: return Fold(code, operands, result);
    case Op::kSum: return Fold(Op::kAdd, operands, result);
    case Op::kMean:
      return Emit(Op::kDivideBy, {Fold(Op::kAdd, operands, Unrounded(result))}, result,
                  {static_cast<double>(operands.size())});
    case Op::kClip: return Clip(operands, op, result);
    case Op::kPow: return Power(operands[0], operands[1], result);
    case Op::kShrink:
      if (!IsInteger(result)) break;
      return Emit(code, {Emit(Op::kIdentity, operands, Type::kDouble)}, result, op.parameters);
    default: break;
  }
  return Emit(code, operands, result, op.parameters);
}

void ProgramBuilder::Write(const Source& result, int output) {
  steps_[~result.from].output = static_cast<int8_t>(output);
}

ChainProgram ProgramBuilder::Finish() const {
  const auto fits = [](Type type) { return IsFloatOfTheChain(type) || type == Type::kBool; };
  ChainProgram program;
  program.inputs = static_cast<int>(inputs_.size());
  program.steps = static_cast<int>(steps_.size());
  program.in_float = std::all_of(inputs_.begin(), inputs_.end(), fits) &&
                     std::all_of(steps_.begin(), steps_.end(),
                                 [&](const Step& step) { return fits(step.result); });
  std::copy(inputs_.begin(), inputs_.end(), program.input_type);
  std::copy(steps_.begin(), steps_.end(), program.step);
  return program;
}

}  // namespace onward::cuda
