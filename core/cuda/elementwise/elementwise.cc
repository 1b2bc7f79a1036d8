// SPDX-License-Identifier: Apache-2.0
// The element-wise operators: each is a chain of one step. What a factory does not take is
// declined, and the CPU's kernel says what is wrong with it.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/cuda/copy.h"
#include "core/cuda/elementwise/chain_kernel.h"
#include "core/cuda/register.h"

namespace onward::cuda {
namespace {

// Sets of types, as bits.
constexpr unsigned Bit(Type type) { return 1u << static_cast<unsigned>(type); }
constexpr unsigned kFloating =
    Bit(Type::kFloat) | Bit(Type::kDouble) | Bit(Type::kHalf) | Bit(Type::kBFloat16);
constexpr unsigned kSignedIntegers =
    Bit(Type::kInt8) | Bit(Type::kInt16) | Bit(Type::kInt32) | Bit(Type::kInt64);
constexpr unsigned kIntegers = kSignedIntegers | Bit(Type::kUint8) | Bit(Type::kUint16) |
                               Bit(Type::kUint32) | Bit(Type::kUint64);
constexpr unsigned kNumbers = kFloating | kIntegers;
constexpr unsigned kSignedNumbers = kFloating | kSignedIntegers;
constexpr unsigned kWideNumbers =
    kFloating | Bit(Type::kInt32) | Bit(Type::kInt64) | Bit(Type::kUint32) | Bit(Type::kUint64);
constexpr unsigned kBool = Bit(Type::kBool);
constexpr unsigned kPowBases = kFloating | Bit(Type::kInt32) | Bit(Type::kInt64);

bool Holds(unsigned set, DType dtype) {
  const std::optional<Type> type = TypeOf(dtype);
  return type.has_value() && (set & Bit(*type)) != 0;
}

absl::Status Declined(const KernelRequest& request) {
  return NodeUnimplemented(request.node, "the GPU has no kernel for these operands");
}

// The operator on inputs of the node, which are present and have shapes.
absl::StatusOr<Kernel> Pointed(const KernelRequest& request, std::vector<int> inputs, Op op,
                               std::vector<double> parameters = {}) {
  if (!request.HasOutput(0) || !request.outputs[0].shape.has_value()) return Declined(request);
  std::vector<ValueSpec> operands;
  ChainStep step;
  for (int i : inputs) {
    if (!request.HasInput(i) || !request.inputs[i].shape.has_value()) return Declined(request);
    step.operands.push_back(static_cast<int>(operands.size()));
    operands.push_back(request.inputs[i]);
  }
  Pointwise pointwise;
  pointwise.inputs = inputs;
  pointwise.code = static_cast<int>(op);
  pointwise.parameters = std::move(parameters);
  step.op = std::make_shared<const Pointwise>(std::move(pointwise));
  step.dtype = request.outputs[0].dtype;
  step.output = 0;
  absl::StatusOr<Kernel> chain = ChainKernel({&step, 1}, operands, request.out(0), inputs);
  if (!chain.ok()) return Annotate(chain.status(), request.node.Describe());
  chain->pointwise = step.op;
  return chain;
}

absl::StatusOr<Kernel> Same(const KernelRequest& request) {
  if (!request.HasInput(0) || !request.HasOutput(0) || !request.inputs[0].shape.has_value() ||
      !request.outputs[0].shape.has_value() || request.in(0) != request.out(0) ||
      request.inputs[0].dtype != request.outputs[0].dtype ||
      DTypeBits(request.inputs[0].dtype) == 0) {
    return Declined(request);
  }
  Kernel kernel = CopyKernel(TensorBytes(request.inputs[0].dtype, request.in(0)));
  kernel.is_view = true;
  kernel.in_place = {{0, 0}};
  return kernel;
}

// Inputs of one type, of `types`; the result has it too, or is bool.
bool AreOfOneType(const KernelRequest& request, absl::Span<const int> inputs, unsigned types,
                  bool gives_bool) {
  if (!request.HasOutput(0)) return false;
  for (int i : inputs) {
    if (!request.HasInput(i) || request.inputs[i].dtype != request.inputs[inputs[0]].dtype) {
      return false;
    }
  }
  const DType dtype = request.inputs[inputs[0]].dtype;
  return Holds(types, dtype) && request.outputs[0].dtype == (gives_bool ? DType::kBool : dtype);
}

// Attributes that are numbers, by name and default.
using Parameters = std::vector<std::pair<const char*, float>>;

struct Simple {
  Op op;
  int operands;
  unsigned types;
  Parameters floats = {};
  bool gives_bool = false;
};

KernelTable::Entry Entry(int since, KernelFactory factory) {
  return {"cuda", since, std::move(factory), "", false, nullptr};
}

KernelTable::Entry Of(int since, const Simple& simple) {
  return Entry(since, [simple](const KernelRequest& request) -> absl::StatusOr<Kernel> {
    std::vector<int> inputs;
    for (int i = 0; i < simple.operands; ++i) inputs.push_back(i);
    if (!AreOfOneType(request, inputs, simple.types, simple.gives_bool)) return Declined(request);
    std::vector<double> parameters;
    for (const auto& [name, value] : simple.floats) {
      parameters.push_back(request.node.Float(name, value));
    }
    return Pointed(request, std::move(inputs), simple.op, std::move(parameters));
  });
}

KernelTable::Entry Unary(int since, Op op, unsigned types = kFloating, Parameters floats = {}) {
  return Of(since, {op, 1, types, std::move(floats)});
}
KernelTable::Entry Binary(int since, Op op, unsigned types) { return Of(since, {op, 2, types}); }
KernelTable::Entry Compare(int since, Op op, unsigned types) {
  return Of(since, {op, 2, types, {}, true});
}

KernelTable::Entry Variadic(int since, Op op, unsigned types) {
  return Entry(since, [op, types](const KernelRequest& request) -> absl::StatusOr<Kernel> {
    std::vector<int> inputs;
    for (size_t i = 0; i < request.inputs.size(); ++i) inputs.push_back(static_cast<int>(i));
    if (inputs.empty() || !AreOfOneType(request, inputs, types, false)) return Declined(request);
    if (inputs.size() == 1) return Same(request);
    return Pointed(request, std::move(inputs), op);
  });
}

absl::StatusOr<Kernel> MakeIsInf(const KernelRequest& request) {
  if (!AreOfOneType(request, {0}, kFloating, true)) return Declined(request);
  return Pointed(request, {0}, Op::kIsInf,
                 {request.node.Int("detect_negative", 1) != 0 ? 1.0 : 0.0,
                  request.node.Int("detect_positive", 1) != 0 ? 1.0 : 0.0});
}

absl::StatusOr<Kernel> MakeMod(const KernelRequest& request) {
  const int64_t fmod = request.node.Int("fmod", 0);
  if ((fmod != 0 && fmod != 1) || !AreOfOneType(request, {0, 1}, kNumbers, false)) {
    return Declined(request);
  }
  return Pointed(request, {0, 1}, fmod == 0 ? Op::kFlooredMod : Op::kTruncatedMod);
}

absl::StatusOr<Kernel> MakeBitShift(const KernelRequest& request) {
  const std::string direction = request.node.String("direction", "");
  if ((direction != "LEFT" && direction != "RIGHT") ||
      !AreOfOneType(request, {0, 1}, kIntegers, false)) {
    return Declined(request);
  }
  return Pointed(request, {0, 1}, direction == "LEFT" ? Op::kShiftLeft : Op::kShiftRight);
}

absl::StatusOr<Kernel> MakePow(const KernelRequest& request) {
  if (!AreOfOneType(request, {0}, kPowBases, false) || !request.HasInput(1) ||
      !Holds(kNumbers, request.inputs[1].dtype)) {
    return Declined(request);
  }
  return Pointed(request, {0, 1}, Op::kPow);
}

absl::StatusOr<Kernel> MakePRelu(const KernelRequest& request) {
  if (!AreOfOneType(request, {0, 1}, kWideNumbers, false) ||
      request.inputs[0].shape != request.outputs[0].shape) {
    return Declined(request);
  }
  return Pointed(request, {0, 1}, Op::kPRelu);
}

absl::StatusOr<Kernel> MakeClip(const KernelRequest& request) {
  std::vector<int> inputs = {0};
  for (int i : {1, 2}) {
    if (!request.HasInput(i)) continue;
    if (!request.inputs[i].shape.has_value() || request.in(i).elements() != 1) {
      return Declined(request);
    }
    inputs.push_back(i);
  }
  if (!AreOfOneType(request, inputs, kNumbers, false)) return Declined(request);
  if (inputs.size() == 1) return Same(request);
  return Pointed(request, std::move(inputs), Op::kClip,
                 {request.HasInput(1) ? 1.0 : 0.0, request.HasInput(2) ? 1.0 : 0.0});
}

absl::StatusOr<Kernel> MakeClipGrad(const KernelRequest& request) {
  if (!AreOfOneType(request, {0, 1, 2}, kFloating, false)) return Declined(request);
  for (int i : {0, 1, 2}) {
    if (request.inputs[i].shape != request.outputs[0].shape) return Declined(request);
  }
  return Pointed(request, {0, 1, 2}, Op::kClipGrad);
}

absl::StatusOr<Kernel> MakeWhere(const KernelRequest& request) {
  if (!AreOfOneType(request, {1, 2}, kNumbers | kBool, false) || !request.HasInput(0) ||
      request.inputs[0].dtype != DType::kBool) {
    return Declined(request);
  }
  return Pointed(request, {0, 1, 2}, Op::kWhere);
}

KernelFactory GeluFactory(int operands, Op exact, Op tanh) {
  return [=](const KernelRequest& request) -> absl::StatusOr<Kernel> {
    const std::string mode = request.node.String("approximate", "none");
    std::vector<int> inputs;
    for (int i = 0; i < operands; ++i) inputs.push_back(i);
    if ((mode != "none" && mode != "tanh") || !AreOfOneType(request, inputs, kFloating, false)) {
      return Declined(request);
    }
    return Pointed(request, std::move(inputs), mode == "tanh" ? tanh : exact);
  };
}

// Cast and CastLike: the output's type is the one to cast to.
absl::StatusOr<Kernel> MakeCast(const KernelRequest& request) {
  if (!request.HasInput(0) || !request.HasOutput(0)) return Declined(request);
  const DType from = request.inputs[0].dtype, to = request.outputs[0].dtype;
  const DType asked = request.node.op_type == "CastLike"
                          ? (request.HasInput(1) ? request.inputs[1].dtype : DType::kUndefined)
                          : static_cast<DType>(request.node.Int("to", 0));
  if (asked != to) return Declined(request);
  if (from == to) return Same(request);
  if (!Holds(kNumbers | kBool, from) || !Holds(kNumbers | kBool, to)) return Declined(request);
  return Pointed(request, {0}, Op::kIdentity);
}

void RegisterUnary(KernelTable& table) {
  table.Add("Neg", Unary(13, Op::kNeg, kSignedNumbers));
  table.Add("Abs", Unary(13, Op::kAbs, kNumbers));
  table.Add("Sign", Unary(13, Op::kSign, kNumbers));
  table.Add("Reciprocal", Unary(13, Op::kReciprocal));
  table.Add("Sqrt", Unary(13, Op::kSqrt));
  table.Add("Floor", Unary(13, Op::kFloor));
  table.Add("Ceil", Unary(13, Op::kCeil));
  table.Add("Round", Unary(11, Op::kRound));
  table.Add("Exp", Unary(13, Op::kExp));
  table.Add("Log", Unary(13, Op::kLog));
  table.Add("Erf", Unary(13, Op::kErf));
  table.Add("Sin", Unary(7, Op::kSin));
  table.Add("Cos", Unary(7, Op::kCos));
  table.Add("Tan", Unary(7, Op::kTan));
  table.Add("Asin", Unary(7, Op::kAsin));
  table.Add("Acos", Unary(7, Op::kAcos));
  table.Add("Atan", Unary(7, Op::kAtan));
  table.Add("Sinh", Unary(9, Op::kSinh));
  table.Add("Cosh", Unary(9, Op::kCosh));
  table.Add("Asinh", Unary(9, Op::kAsinh));
  table.Add("Acosh", Unary(9, Op::kAcosh));
  table.Add("Atanh", Unary(9, Op::kAtanh));
  table.Add("Not", Unary(1, Op::kNot, kBool));
  table.Add("BitwiseNot", Unary(18, Op::kBitwiseNot, kIntegers));
  table.Add("IsNaN", Of(9, {Op::kIsNaN, 1, kFloating, {}, true}));
  table.Add("IsInf", Entry(10, MakeIsInf));
}

void RegisterArithmetic(KernelTable& table) {
  table.Add("Add", Binary(7, Op::kAdd, kNumbers));
  table.Add("Sub", Binary(7, Op::kSub, kNumbers));
  table.Add("Mul", Binary(7, Op::kMul, kNumbers));
  table.Add("Div", Binary(7, Op::kDiv, kNumbers));
  table.Add("Mod", Entry(10, MakeMod));
  table.Add("Pow", Entry(12, MakePow));
  table.Add("Min", Variadic(8, Op::kMin, kNumbers));
  table.Add("Max", Variadic(8, Op::kMax, kNumbers));
  table.Add("Sum", Variadic(8, Op::kSum, kFloating));
  table.Add("Mean", Variadic(8, Op::kMean, kFloating));
  table.Add("PRelu", Entry(9, MakePRelu));
  table.Add("Clip", Entry(11, MakeClip));
  table.Add("ClipGrad", Entry(1, MakeClipGrad), kOnwardDomain);
}

void RegisterLogical(KernelTable& table) {
  table.Add("Equal", Compare(7, Op::kEqual, kNumbers | kBool));
  table.Add("Greater", Compare(7, Op::kGreater, kNumbers));
  table.Add("GreaterOrEqual", Compare(12, Op::kGreaterOrEqual, kNumbers));
  table.Add("Less", Compare(7, Op::kLess, kNumbers));
  table.Add("LessOrEqual", Compare(12, Op::kLessOrEqual, kNumbers));
  table.Add("And", Binary(7, Op::kAnd, kBool));
  table.Add("Or", Binary(7, Op::kOr, kBool));
  table.Add("Xor", Binary(7, Op::kXor, kBool));
  table.Add("BitwiseAnd", Binary(18, Op::kAnd, kIntegers));
  table.Add("BitwiseOr", Binary(18, Op::kOr, kIntegers));
  table.Add("BitwiseXor", Binary(18, Op::kXor, kIntegers));
  table.Add("BitShift", Entry(11, MakeBitShift));
  table.Add("Where", Entry(9, MakeWhere));
  table.Add("Cast", Entry(6, MakeCast));
  table.Add("CastLike", Entry(15, MakeCast));
  table.Add("Identity", Entry(1, Same));
}

void RegisterActivation(KernelTable& table) {
  table.Add("Relu", Unary(6, Op::kRelu, kSignedNumbers));
  table.Add("ReluGrad", Binary(1, Op::kReluGrad, kFloating), kOnwardDomain);
  table.Add("LeakyRelu", Unary(6, Op::kLeakyRelu, kFloating, {{"alpha", 0.01f}}));
  table.Add("ThresholdedRelu", Unary(10, Op::kThresholdedRelu, kFloating, {{"alpha", 1.0f}}));
  table.Add("Elu", Unary(6, Op::kElu, kFloating, {{"alpha", 1.0f}}));
  table.Add("Selu",
            Unary(6, Op::kSelu, kFloating,
                  {{"alpha", 1.67326319217681884765625f}, {"gamma", 1.05070102214813232421875f}}));
  table.Add("Celu", Unary(12, Op::kCelu, kFloating, {{"alpha", 1.0f}}));
  table.Add("Sigmoid", Unary(6, Op::kSigmoid));
  table.Add("Tanh", Unary(6, Op::kTanh));
  table.Add("HardSigmoid",
            Unary(6, Op::kHardSigmoid, kFloating, {{"alpha", 0.2f}, {"beta", 0.5f}}));
  table.Add("HardSwish", Unary(14, Op::kHardSwish));
  table.Add("Softplus", Unary(1, Op::kSoftplus));
  table.Add("Softsign", Unary(1, Op::kSoftsign));
  table.Add("Swish", Unary(24, Op::kSwish, kFloating, {{"alpha", 1.0f}}));
  table.Add("Mish", Unary(18, Op::kMish));
  table.Add("Gelu", Entry(20, GeluFactory(1, Op::kGelu, Op::kGeluTanh)));
  table.Add("GeluGrad", Entry(1, GeluFactory(2, Op::kGeluGrad, Op::kGeluTanhGrad)), kOnwardDomain);
  table.Add("Shrink", Unary(9, Op::kShrink, kNumbers, {{"bias", 0.0f}, {"lambd", 0.5f}}));
}

}  // namespace

void RegisterElementwise(const Context&, KernelTable& table) {
  RegisterUnary(table);
  RegisterArithmetic(table);
  RegisterLogical(table);
  RegisterActivation(table);
}

}  // namespace onward::cuda
