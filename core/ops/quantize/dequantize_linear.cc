// SPDX-License-Identifier: Apache-2.0
// DequantizeLinear: y = (x - zero point) * scale, in float, rounded once to the output's type.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/small_float.h"
#include "core/base/status.h"
#include "core/ops/cpu/type_list.h"
#include "core/ops/movement/movement.h"
#include "core/ops/quantize/granularity.h"
#include "core/ops/quantize/quantize.h"
#include "core/tensor/packed.h"

namespace onward {
namespace {

constexpr int64_t kTile = 1024;
static_assert(kTile % kPackedStep == 0);
constexpr int64_t kTilesPerThread = 8;

using WholeTypes = TypeList<int8_t, uint8_t, int16_t, uint16_t, int32_t>;
using OutTypes = TypeList<float, Float16, BFloat16>;

struct Parameters {
  const float* scale;
  const float* zero;  // null: 0
};

// From elements [begin, end), which start at x.
template <typename T, typename Out>
void DequantizeRange(const Granularity& g, const T* x, const Parameters& p, int64_t begin,
                     int64_t end, Out* y) {
  g.ForRuns(begin, end, [&](int64_t at, int64_t n, int64_t s) {
    const T* from = x + (at - begin);
    Out* to = y + (at - begin);
    if (!g.advances) {
      const float scale = p.scale[s], zero = p.zero == nullptr ? 0 : p.zero[s];
      for (int64_t i = 0; i < n; ++i) to[i] = Out((static_cast<float>(from[i]) - zero) * scale);
    } else if (p.zero == nullptr) {
      const float* scale = p.scale + s;
      for (int64_t i = 0; i < n; ++i) to[i] = Out(static_cast<float>(from[i]) * scale[i]);
    } else {
      const float *scale = p.scale + s, *zero = p.zero + s;
      for (int64_t i = 0; i < n; ++i) {
        to[i] = Out((static_cast<float>(from[i]) - zero[i]) * scale[i]);
      }
    }
  });
}

template <typename Out>
void DequantizeSmall(const Granularity& g, const Tensor& x, const Parameters& p, int64_t begin,
                     int64_t end, Out* y) {
  const SmallValues& values = SmallValuesOf(x.dtype());
  for (int64_t at = begin; at < end; at += kTile) {
    uint8_t codes[kTile];
    float numbers[kTile];
    const int64_t n = std::min(kTile, end - at);
    UnpackCodes(x, at, n, codes);
    for (int64_t i = 0; i < n; ++i) numbers[i] = values[codes[i]];
    DequantizeRange(g, numbers, p, at, at + n, y + at);
  }
}

template <typename Out>
void Dequantize(const Granularity& g, const Tensor& x, const Parameters& p, Tensor* y) {
  Out* to = y->data<Out>();
  const int64_t tiles = (g.elements + kTile - 1) / kTile;
  ParallelFor(tiles, kTilesPerThread, [&](int64_t first, int64_t last) {
    const int64_t begin = first * kTile, end = std::min(g.elements, last * kTile);
    if (IsSmall(x.dtype())) return DequantizeSmall(g, x, p, begin, end, to);
    WholeTypes::Dispatch(x.dtype(), [&]<typename T>() {
      DequantizeRange(g, x.data<T>() + begin, p, begin, end, to + begin);
    });
  });
}

}  // namespace

absl::StatusOr<Kernel> MakeDequantizeLinear(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 2));
  const Shape shape = request.in(0);
  ONWARD_ASSIGN_OR_RETURN(const Granularity g, GranularityOf(request.node, shape, request.in(1)));
  ONWARD_RETURN_IF_ERROR(CheckZeroPoint(request, 1, 2));
  ONWARD_RETURN_IF_ERROR(CheckSameType(request, 0, {2}));
  const DType from = request.inputs[0].dtype, to = request.outputs[0].dtype;
  const bool known = IsSmall(from) || WholeTypes::Dispatch(from, []<typename T>() {});
  if (!known || !OutTypes::Dispatch(to, []<typename T>() {})) {
    return NodeUnimplemented(request.node,
                             absl::StrCat("no kernel from ", std::string(DTypeName(from)), " to ",
                                          std::string(DTypeName(to))));
  }
  const OutputSlot slot(request, 0);
  ONWARD_RETURN_IF_ERROR(slot.Accepts(shape));
  Kernel kernel;
  kernel.run = [g, slot, shape](const KernelCall& call) -> absl::Status {
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, shape));
    const Tensor* zero_point = InputAt(call.inputs, 2);
    const std::vector<float> scale = FloatsOf(*call.inputs[1]);
    const std::vector<float> zero =
        zero_point == nullptr ? std::vector<float>() : FloatsOf(*zero_point);
    const Parameters p = {scale.data(), zero.empty() ? nullptr : zero.data()};
    OutTypes::Dispatch(output->dtype(),
                       [&]<typename Out>() { Dequantize<Out>(g, *call.inputs[0], p, output); });
    return absl::OkStatus();
  };
  return kernel;
}

}  // namespace onward
