// SPDX-License-Identifier: Apache-2.0
// Cast, CastLike, BitCast and Identity: between all numbers, booleans and strings.
#include "core/ops/elementwise/cast.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "core/base/small_float.h"
#include "core/base/status.h"
#include "core/ops/elementwise/text_number.h"
#include "core/ops/movement/movement.h"

namespace onward {
namespace {

using CastTypes = NumericTypes::With<bool>;

template <typename From, typename To>
void CastRun(absl::Span<const Operand> in, void* out, int64_t n) {
  const From* x = in[0].as<From>();
  To* y = static_cast<To*>(out);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = CastElement<From, To>(x[i]);
}

// AVX2 has no conversion to 64 bits. Most numbers fit into 32; where some of a piece do not,
// its elements are converted one by one.
template <typename From>
void CastToInt64(absl::Span<const Operand> in, void* out, int64_t n) {
  constexpr int64_t kPiece = 64;
  constexpr From kEnd = 0x1p31f;
  for (int64_t begin = 0; begin < n; begin += kPiece) {
    const int64_t count = std::min(kPiece, n - begin);
    const From* x = in[0].as<From>() + begin;
    int64_t* y = static_cast<int64_t*>(out) + begin;
    int fits = 1;
#pragma omp simd reduction(& : fits)
    for (int64_t i = 0; i < count; ++i) fits &= std::fabs(x[i]) < kEnd ? 1 : 0;
    if (fits != 0) {
#pragma omp simd
      for (int64_t i = 0; i < count; ++i) y[i] = static_cast<int32_t>(x[i]);
    } else {
      for (int64_t i = 0; i < count; ++i) y[i] = CastElement<From, int64_t>(x[i]);
    }
  }
}

template <typename From, typename To>
RunBody CastBody() {
  if constexpr (std::is_floating_point_v<From> && std::is_same_v<To, int64_t>) {
    return CastToInt64<From>;
  } else {
    return CastRun<From, To>;
  }
}

template <typename From>
std::string TextOf(From x) {
  if constexpr (std::is_integral_v<From> && !std::is_same_v<From, bool>) {
    using Widest = std::conditional_t<std::is_signed_v<From>, int64_t, uint64_t>;
    return NumberText(static_cast<Widest>(x));
  } else {
    return NumberText(x);
  }
}

template <typename From>
void TextRun(absl::Span<const Operand> in, void* out, int64_t n) {
  const From* x = in[0].as<From>();
  std::string* y = static_cast<std::string*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = TextOf(x[i]);
}

template <typename To>
std::optional<To> Parse(const std::string& text) {
  if constexpr (std::is_same_v<To, bool>) {
    return ParseBool(text);
  } else if constexpr (std::is_same_v<To, float>) {
    return ParseFloat(text);
  } else if constexpr (std::is_integral_v<To>) {
    using Widest = std::conditional_t<std::is_signed_v<To>, int64_t, uint64_t>;
    const std::optional<Widest> value = ParseInteger<Widest>(text);
    if (!value.has_value()) return std::nullopt;
    return static_cast<To>(
        std::clamp<Widest>(*value, std::numeric_limits<To>::min(), std::numeric_limits<To>::max()));
  } else {
    const std::optional<double> value = ParseDouble(text);
    if (!value.has_value()) return std::nullopt;
    return CastElement<double, To>(*value);
  }
}

template <typename To>
absl::Status ParseAll(const Node& node, const Tensor& input, Tensor& output) {
  const std::string* x = input.data<std::string>();
  To* y = output.data<To>();
  for (int64_t i = 0; i < input.elements(); ++i) {
    const std::optional<To> value = Parse<To>(x[i]);
    if (!value.has_value()) {
      return NodeError(node, absl::StrCat("element ", i, " is '", x[i].substr(0, 40),
                                          "', which is not a number"));
    }
    y[i] = *value;
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeFromString(const KernelRequest& request) {
  const Shape shape = request.in(0);
  const OutputSlot slot(request, 0);
  ONWARD_RETURN_IF_ERROR(slot.Accepts(shape));
  const NodeRef node = KeepNode(request.node);
  Kernel kernel;
  CastTypes::Dispatch(request.outputs[0].dtype, [&]<typename To>() {
    kernel.run = [node, slot, shape](const KernelCall& call) -> absl::Status {
      ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, shape));
      return ParseAll<To>(*node, *call.inputs[0], *output);
    };
  });
  if (kernel.run == nullptr) return UnservedType(request);
  return kernel;
}

absl::StatusOr<Kernel> MakeCastTo(const KernelRequest& request, DType to) {
  if (!request.HasInput(0)) return NodeError(request.node, "input 0 is missing");
  if (request.outputs[0].dtype != to) {
    return NodeError(request.node, "the output's declared type is not the one cast to");
  }
  const DType from = request.inputs[0].dtype;
  if (from == to) return IdentityKernel(request);
  if (IsSmall(from) || IsSmall(to)) return MakeSmallCast(request, to);
  if (from == DType::kString) return MakeFromString(request);
  RunBody body;
  int64_t grain = kLightGrain;
  CastTypes::Dispatch(from, [&]<typename From>() {
    if (to == DType::kString) {
      body = TextRun<From>;
      grain = MoveGrain<std::string>();
      return;
    }
    CastTypes::Dispatch(to, [&]<typename To>() { body = CastBody<From, To>(); });
  });
  if (body == nullptr) {
    return NodeUnimplemented(request.node,
                             absl::StrCat("no kernel from ", std::string(DTypeName(from)), " to ",
                                          std::string(DTypeName(to))));
  }
  return BroadcastKernel(request, {0}, std::move(body), grain);
}

absl::StatusOr<DType> TargetOf(const Node& node) {
  const int64_t to = node.Int("to", 0);
  if (to <= 0 || to > std::numeric_limits<int32_t>::max() ||
      !IsKnownDType(static_cast<int32_t>(to))) {
    return NodeError(node, absl::StrCat("'to' is ", to, ", which is no element type"));
  }
  return static_cast<DType>(to);
}

absl::StatusOr<Kernel> MakeCast(const KernelRequest& request) {
  ONWARD_ASSIGN_OR_RETURN(const DType to, TargetOf(request.node));
  return MakeCastTo(request, to);
}

absl::StatusOr<Kernel> MakeCastLike(const KernelRequest& request) {
  if (!request.HasInput(1)) return NodeError(request.node, "input 1 is missing");
  return MakeCastTo(request, request.inputs[1].dtype);
}

// The same bits as another type of the same width.
absl::StatusOr<Kernel> MakeBitCast(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  ONWARD_ASSIGN_OR_RETURN(const DType to, TargetOf(request.node));
  const DType from = request.inputs[0].dtype;
  if (DTypeBits(from) != DTypeBits(to) || DTypeBits(to) == 0 || request.outputs[0].dtype != to) {
    return NodeError(request.node,
                     absl::StrCat("cannot see ", std::string(DTypeName(from)), " as ",
                                  std::string(DTypeName(to)), ", which is not as wide"));
  }
  const Shape shape = request.in(0);
  const OutputSlot slot(request, 0);
  ONWARD_RETURN_IF_ERROR(slot.Accepts(shape));
  Kernel kernel;
  kernel.infallible = slot.planned();
  // A bool has to be 0 or 1, so its bytes cannot be those of an integer.
  if (to != DType::kBool) SetView(request, kernel);
  kernel.run = [slot, shape, to](const KernelCall& call) -> absl::Status {
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, shape));
    CopyAll(*output, *call.inputs[0]);
    if (to == DType::kBool) {
      uint8_t* bytes = output->data<uint8_t>();
      for (int64_t i = 0; i < shape.elements(); ++i) bytes[i] = bytes[i] != 0;
    }
    return absl::OkStatus();
  };
  return kernel;
}

}  // namespace

void RegisterCastKernels(KernelTable& table) {
  const std::string types = "all but complex";
  table.Add("Cast", {"reference", 6, MakeCast, types, false, LikeInput(0)});
  table.Add("CastLike", {"reference", 15, MakeCastLike, types, false, LikeInput(0)});
  table.Add("BitCast", {"reference", 26, MakeBitCast, "all but string"});
  table.Add("Identity",
            {"reference", 1, [](const KernelRequest& r) { return IdentityKernel(r); }, "all"});
}

}  // namespace onward
