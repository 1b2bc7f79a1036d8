// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear: y = saturate(round(x / scale) + zero point), to nearest even.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/small_float.h"
#include "core/base/status.h"
#include "core/ops/movement/movement.h"
#include "core/ops/quantize/granularity.h"
#include "core/ops/quantize/quantize.h"
#include "core/ops/quantize/rounding.h"
#include "core/tensor/dispatch.h"
#include "core/tensor/packed.h"

namespace onward {
namespace {

constexpr int64_t kTile = 1024;
static_assert(kTile % kPackedStep == 0);
constexpr int64_t kTilesPerThread = 8;

// The type that x, the scale and their quotient are rounded to.
using Precision = DType;

template <Precision kPrecision, typename C>
C Rounded(C v) {
  if constexpr (kPrecision == DType::kFloat16) {
    return static_cast<C>(Float16(static_cast<float>(v)));
  } else if constexpr (kPrecision == DType::kBFloat16) {
    return static_cast<C>(BFloat16(static_cast<float>(v)));
  } else {
    return v;
  }
}

// int32 does not fit into float, so its quotients are computed in double.
template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, int32_t>, double, float>;

// n elements with one scale and zero point, or one each.
struct Run {
  int64_t n;
  const float* scale;
  const float* zero;  // null: 0
  bool advances;
  float low, high;  // of the integer type
};

template <typename T, Precision kPrecision, typename Out, typename Finish>
void ForQuotients(const T* x, const Run& run, Out* y, const Finish& finish) {
  using C = Wide<T>;
  const auto quotient = [](T value, float scale) {
    return Rounded<kPrecision, C>(Rounded<kPrecision, C>(static_cast<C>(value)) /
                                  Rounded<kPrecision, C>(static_cast<C>(scale)));
  };
  if (!run.advances) {
    const float scale = run.scale[0], zero = run.zero == nullptr ? 0 : run.zero[0];
    for (int64_t i = 0; i < run.n; ++i) y[i] = finish(quotient(x[i], scale), zero);
  } else if (run.zero == nullptr) {
    for (int64_t i = 0; i < run.n; ++i) y[i] = finish(quotient(x[i], run.scale[i]), 0.0f);
  } else {
    for (int64_t i = 0; i < run.n; ++i) y[i] = finish(quotient(x[i], run.scale[i]), run.zero[i]);
  }
}

template <typename T, Precision kPrecision, typename Out>
void QuantizeRun(const T* x, const Run& run, Out* y) {
  using C = Wide<T>;
  constexpr bool kBytes = std::is_same_v<Out, int8_t> || std::is_same_v<Out, uint8_t>;
  if constexpr (std::is_same_v<T, float> && kPrecision == DType::kFloat && kBytes) {
    const bool whole_byte = run.high - run.low == 255;
    if (!run.advances && whole_byte) {
      return QuantizeBytes(x, run.n, run.scale[0], run.zero == nullptr ? 0 : run.zero[0], y);
    }
  }
  if constexpr (std::is_same_v<Out, float>) {
    ForQuotients<T, kPrecision>(x, run, y,
                                [](C q, float zero) { return static_cast<float>(q) + zero; });
  } else {
    const C low = run.low, high = run.high;
    ForQuotients<T, kPrecision>(x, run, y, [low, high](C q, float zero) {
      C v = std::nearbyint(q) + static_cast<C>(zero);
      v = v > low ? v : low;  // NaN too
      v = v < high ? v : high;
      return static_cast<Out>(static_cast<int32_t>(v));
    });
  }
}

struct Quantize {
  Granularity granularity;
  DType to;
  bool saturate = true;
};

// Elements [begin, end), a multiple of whole tiles.
template <typename T, Precision kPrecision, typename Out>
void QuantizeRange(const Quantize& q, const T* x, const float* scale, const float* zero,
                   int64_t begin, int64_t end, Out* y) {
  const IntegerRange range = RangeOf(q.to);
  const Granularity& g = q.granularity;
  g.ForRuns(begin, end, [&](int64_t at, int64_t n, int64_t s) {
    const Run run = {n,
                     scale + s,
                     zero == nullptr ? nullptr : zero + s,
                     g.advances,
                     static_cast<float>(range.low),
                     static_cast<float>(range.high)};
    QuantizeRun<T, kPrecision>(x + at, run, y + (at - begin));
  });
}

// Types of whole bytes are written in place, the others through tiles of codes.
template <typename T, Precision kPrecision>
void QuantizeTo(const Quantize& q, const T* x, const float* scale, const float* zero, Tensor* y) {
  const int64_t elements = q.granularity.elements;
  const int64_t tiles = (elements + kTile - 1) / kTile;
  ParallelFor(tiles, kTilesPerThread, [&](int64_t first, int64_t last) {
    const int64_t begin = first * kTile, end = std::min(elements, last * kTile);
    const auto direct = [&]<typename Out>() {
      QuantizeRange<T, kPrecision>(q, x, scale, zero, begin, end, y->data<Out>() + begin);
    };
    switch (q.to) {
      case DType::kInt8: return direct.template operator()<int8_t>();
      case DType::kUint8: return direct.template operator()<uint8_t>();
      case DType::kInt16: return direct.template operator()<int16_t>();
      case DType::kUint16: return direct.template operator()<uint16_t>();
      default: break;
    }
    for (int64_t at = begin; at < end; at += kTile) {
      uint8_t codes[kTile];
      const int64_t n = std::min(kTile, end - at);
      if (IsSmallInteger(q.to)) {
        QuantizeRange<T, kPrecision>(q, x, scale, zero, at, at + n, codes);
      } else {
        float numbers[kTile];
        QuantizeRange<T, kPrecision>(q, x, scale, zero, at, at + n, numbers);
        EncodeSmallFloats(q.to, numbers, n, {.saturate = q.saturate}, codes);
      }
      PackCodes(codes, at, n, y);
    }
  });
}

using RunQuantize = void (*)(const Quantize& q, const Tensor& x, const float* scale,
                             const float* zero, Tensor* y);

template <typename T, Precision kPrecision>
void RunTyped(const Quantize& q, const Tensor& x, const float* scale, const float* zero,
              Tensor* y) {
  QuantizeTo<T, kPrecision>(q, x.data<T>(), scale, zero, y);
}

template <typename T>
RunQuantize ForPrecision(Precision precision) {
  switch (precision) {
    case DType::kFloat16: return RunTyped<T, DType::kFloat16>;
    case DType::kBFloat16: return RunTyped<T, DType::kBFloat16>;
    default: return RunTyped<T, DType::kFloat>;
  }
}

RunQuantize ForTypes(DType x, Precision precision) {
  switch (x) {
    case DType::kFloat: return ForPrecision<float>(precision);
    case DType::kFloat16: return ForPrecision<Float16>(precision);
    case DType::kBFloat16: return ForPrecision<BFloat16>(precision);
    case DType::kInt32: return ForPrecision<int32_t>(precision);
    default: return nullptr;
  }
}

absl::StatusOr<Precision> PrecisionOf(const KernelRequest& request) {
  const int64_t given = request.node.Int("precision", 0);
  if (given == 0) return request.inputs[1].dtype;
  for (const DType known : {DType::kFloat, DType::kFloat16, DType::kBFloat16}) {
    if (given == static_cast<int64_t>(known)) return known;
  }
  return NodeError(request.node,
                   absl::StrCat("precision is ", given, ", expected float, float16 or bfloat16"));
}

}  // namespace

absl::StatusOr<Kernel> MakeQuantizeLinear(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 2));
  const Shape shape = request.in(0);
  ONWARD_ASSIGN_OR_RETURN(const Granularity granularity,
                          GranularityOf(request.node, shape, request.in(1)));
  ONWARD_RETURN_IF_ERROR(CheckZeroPoint(request, 1, 2));
  ONWARD_ASSIGN_OR_RETURN(const Precision precision, PrecisionOf(request));
  const DType to = request.outputs[0].dtype;
  if (request.HasInput(2) && request.inputs[2].dtype != to) {
    return NodeError(request.node, absl::StrCat("the zero point is ",
                                                std::string(DTypeName(request.inputs[2].dtype)),
                                                ", the output ", std::string(DTypeName(to))));
  }
  const bool known = IsSmall(to) || to == DType::kInt8 || to == DType::kUint8 ||
                     to == DType::kInt16 || to == DType::kUint16;
  const RunQuantize run = ForTypes(request.inputs[0].dtype, precision);
  if (run == nullptr || !known) {
    return NodeUnimplemented(request.node, "no kernel for these types");
  }
  const OutputSlot slot(request, 0);
  ONWARD_RETURN_IF_ERROR(slot.Accepts(shape));
  const Quantize q{granularity, to, request.node.Int("saturate", 1) != 0};
  Kernel kernel;
  kernel.run = [q, run, slot, shape](const KernelCall& call) -> absl::Status {
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, shape));
    const Tensor* zero_point = InputAt(call.inputs, 2);
    const std::vector<float> scale = FloatsOf(*call.inputs[1]);
    const std::vector<float> zero =
        zero_point == nullptr ? std::vector<float>() : FloatsOf(*zero_point);
    run(q, *call.inputs[0], scale.data(), zero.empty() ? nullptr : zero.data(), output);
    return absl::OkStatus();
  };
  return kernel;
}

}  // namespace onward
