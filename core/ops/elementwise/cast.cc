// SPDX-License-Identifier: Apache-2.0
// Cast, CastLike and Identity: between all numbers, booleans and strings. Floats
// beyond an integer's range, undefined in the standard, saturate; NaN becomes 0.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/ops/cpu/scalar_math.h"
#include "core/ops/elementwise/elementwise.h"
#include "core/ops/elementwise/text_number.h"
#include "core/ops/movement/movement.h"

namespace onward {
namespace {

using CastTypes = NumericTypes::With<bool>;

// Rounds towards zero and marks what was lost in the last bit, so that rounding
// once more to 16 bits gives the double's nearest value.
float RoundToOdd(double x) {
  const float nearest = static_cast<float>(x);
  if (static_cast<double>(nearest) == x || std::isnan(x)) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(x)) --bits;
  return std::bit_cast<float>(bits | 1u);
}

template <typename From, typename To>
To CastElement(From x) {
  if constexpr (kIsHalf<From>) {
    return CastElement<float, To>(x);
  } else if constexpr (kIsHalf<To>) {
    if constexpr (std::is_same_v<From, float>) return To(x);
    return To(RoundToOdd(static_cast<double>(x)));
  } else {
    return Convert<To>(x);
  }
}

template <typename From, typename To>
void CastRun(absl::Span<const Operand> in, void* out, int64_t n) {
  const From* x = in[0].as<From>();
  To* y = static_cast<To*>(out);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = CastElement<From, To>(x[i]);
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
  if (from == DType::kString) return MakeFromString(request);
  RunBody body;
  int64_t grain = kLightGrain;
  CastTypes::Dispatch(from, [&]<typename From>() {
    if (to == DType::kString) {
      body = TextRun<From>;
      grain = MoveGrain<std::string>();
      return;
    }
    CastTypes::Dispatch(to, [&]<typename To>() { body = CastRun<From, To>; });
  });
  if (body == nullptr) {
    return NodeUnimplemented(request.node,
                             absl::StrCat("no kernel from ", std::string(DTypeName(from)), " to ",
                                          std::string(DTypeName(to))));
  }
  return BroadcastKernel(request, {0}, std::move(body), grain);
}

absl::StatusOr<Kernel> MakeCast(const KernelRequest& request) {
  const int64_t to = request.node.Int("to", 0);
  if (to <= 0 || to > std::numeric_limits<int32_t>::max() ||
      !IsKnownDType(static_cast<int32_t>(to))) {
    return NodeError(request.node, absl::StrCat("'to' is ", to, ", which is no element type"));
  }
  return MakeCastTo(request, static_cast<DType>(to));
}

absl::StatusOr<Kernel> MakeCastLike(const KernelRequest& request) {
  if (!request.HasInput(1)) return NodeError(request.node, "input 1 is missing");
  return MakeCastTo(request, request.inputs[1].dtype);
}

}  // namespace

void RegisterCastKernels(KernelTable& table) {
  using Types = CastTypes::With<std::string>;
  table.Add("Cast", Entry<Types>(6, MakeCast, LikeInput(0)));
  table.Add("CastLike", Entry<Types>(15, MakeCastLike, LikeInput(0)));
  table.Add("Identity",
            {"reference", 1, [](const KernelRequest& r) { return IdentityKernel(r); }, "all"});
}

}  // namespace onward
