// SPDX-License-Identifier: Apache-2.0
// Casts from and to float8, float6, float4, int4 and int2, through tiles of float: every
// small number is one, and rounding twice is avoided by rounding to odd first.
#include <algorithm>
#include <functional>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/small_float.h"
#include "core/base/status.h"
#include "core/ops/elementwise/cast.h"
#include "core/ops/elementwise/text_number.h"
#include "core/ops/movement/movement.h"
#include "core/tensor/packed.h"

namespace onward {
namespace {

constexpr int64_t kTile = 512;
static_assert(kTile % kPackedStep == 0);
constexpr int64_t kTilesPerThread = 8;

using Load = std::function<void(const Tensor& from, int64_t begin, int64_t n, float* tile)>;
using Store = std::function<void(const float* tile, int64_t begin, int64_t n, Tensor* to)>;

template <typename T>
float Nearly(T x) {
  if constexpr (sizeof(T) > 2 && !std::is_same_v<T, float>) {
    return RoundToOdd(static_cast<double>(x));
  } else {
    return static_cast<float>(x);
  }
}

// Of wide integers that become small ones, the low bits alone matter.
template <typename T>
float LowBits(T x) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    return static_cast<float>(static_cast<int8_t>(x));
  } else {
    return Nearly(x);
  }
}

Load LoaderOf(DType from, bool to_integer) {
  if (IsSmall(from)) {
    return [](const Tensor& x, int64_t begin, int64_t n, float* tile) {
      uint8_t codes[kTile];
      UnpackCodes(x, begin, n, codes);
      const SmallValues& values = SmallValuesOf(x.dtype());
      for (int64_t i = 0; i < n; ++i) tile[i] = values[codes[i]];
    };
  }
  Load load;
  DispatchNumeric(from, [&]<typename T>() {
    if (to_integer) {
      load = [](const Tensor& x, int64_t begin, int64_t n, float* tile) {
        for (int64_t i = 0; i < n; ++i) tile[i] = LowBits(x.data<T>()[begin + i]);
      };
    } else {
      load = [](const Tensor& x, int64_t begin, int64_t n, float* tile) {
        for (int64_t i = 0; i < n; ++i) tile[i] = Nearly(x.data<T>()[begin + i]);
      };
    }
  });
  return load;
}

Store StorerOf(DType to, const SmallRounding& rounding) {
  if (IsSmallFloat(to)) {
    return [to, rounding](const float* tile, int64_t begin, int64_t n, Tensor* y) {
      uint8_t codes[kTile];
      EncodeSmallFloats(to, tile, n, rounding, codes);
      PackCodes(codes, begin, n, y);
    };
  }
  if (IsSmallInteger(to)) {
    return [](const float* tile, int64_t begin, int64_t n, Tensor* y) {
      uint8_t codes[kTile];
      for (int64_t i = 0; i < n; ++i) codes[i] = static_cast<uint8_t>(Convert<int32_t>(tile[i]));
      PackCodes(codes, begin, n, y);
    };
  }
  Store store;
  DispatchNumeric(to, [&]<typename T>() {
    store = [](const float* tile, int64_t begin, int64_t n, Tensor* y) {
      for (int64_t i = 0; i < n; ++i) y->data<T>()[begin + i] = CastElement<float, T>(tile[i]);
    };
  });
  return store;
}

absl::Status CheckRounding(const Node& node, SmallRounding* rounding) {
  rounding->saturate = node.Int("saturate", 1) != 0;
  const std::string mode = node.String("round_mode", "up");
  if (mode == "up") {
    rounding->power = PowerRounding::kUp;
  } else if (mode == "down") {
    rounding->power = PowerRounding::kDown;
  } else if (mode == "nearest") {
    rounding->power = PowerRounding::kNearest;
  } else {
    return NodeError(
        node, absl::StrCat("round_mode is '", mode, "', expected 'up', 'down' or 'nearest'"));
  }
  return absl::OkStatus();
}

void WriteTexts(const Tensor& input, Tensor* output) {
  const Tensor codes = Unpacked(input);
  const SmallValues& values = SmallValuesOf(input.dtype());
  const bool whole = IsSmallInteger(input.dtype());
  for (int64_t i = 0; i < input.elements(); ++i) {
    const float value = values[codes.data<uint8_t>()[i]];
    output->data<std::string>()[i] =
        whole ? NumberText(static_cast<int64_t>(value)) : NumberText(value);
  }
}

// Numbers of texts; integers are kept in the range of the type.
absl::Status ReadTexts(const Node& node, const Tensor& input, const Store& store, Tensor* output) {
  const bool whole = IsSmallInteger(output->dtype());
  const IntegerRange range = RangeOf(output->dtype());
  float tile[kTile];
  for (int64_t begin = 0; begin < input.elements(); begin += kTile) {
    const int64_t n = std::min(kTile, input.elements() - begin);
    for (int64_t i = 0; i < n; ++i) {
      const std::string& text = input.data<std::string>()[begin + i];
      const std::optional<double> value = ParseDouble(text);
      if (!value.has_value()) {
        return NodeError(node, absl::StrCat("element ", begin + i, " is '", text.substr(0, 40),
                                            "', which is not a number"));
      }
      tile[i] = RoundToOdd(*value);
      if (whole) {
        tile[i] =
            std::clamp(tile[i], static_cast<float>(range.low), static_cast<float>(range.high));
      }
    }
    store(tile, begin, n, output);
  }
  return absl::OkStatus();
}

void CastTiles(const Tensor& input, const Load& load, const Store& store, Tensor* output) {
  const int64_t tiles = (input.elements() + kTile - 1) / kTile;
  ParallelFor(tiles, kTilesPerThread, [&](int64_t first, int64_t last) {
    float tile[kTile];
    for (int64_t t = first; t < last; ++t) {
      const int64_t begin = t * kTile, n = std::min(kTile, input.elements() - begin);
      load(input, begin, n, tile);
      store(tile, begin, n, output);
    }
  });
}

}  // namespace

absl::StatusOr<Kernel> MakeSmallCast(const KernelRequest& request, DType to) {
  const DType from = request.inputs[0].dtype;
  const Shape shape = request.in(0);
  const OutputSlot slot(request, 0);
  ONWARD_RETURN_IF_ERROR(slot.Accepts(shape));
  SmallRounding rounding;
  ONWARD_RETURN_IF_ERROR(CheckRounding(request.node, &rounding));
  const Load load = LoaderOf(from, IsSmallInteger(to));
  const Store store = StorerOf(to, rounding);
  const bool text = from == DType::kString || to == DType::kString;
  if (!text && (load == nullptr || store == nullptr)) return UnservedType(request);
  Kernel kernel;
  kernel.infallible = slot.planned() && !text;
  kernel.run = [=, node = KeepNode(request.node)](const KernelCall& call) -> absl::Status {
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, shape));
    const Tensor& input = *call.inputs[0];
    if (from == DType::kString) return ReadTexts(*node, input, store, output);
    if (to == DType::kString) {
      WriteTexts(input, output);
    } else {
      CastTiles(input, load, store, output);
    }
    return absl::OkStatus();
  };
  return kernel;
}

}  // namespace onward
