// SPDX-License-Identifier: Apache-2.0
// DynamicQuantizeLinear: scale and zero point from the range of x, with zero in it.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/movement/movement.h"
#include "core/ops/quantize/quantize.h"
#include "core/ops/quantize/rounding.h"

namespace onward {
namespace {

constexpr int64_t kPart = 8192;  // elements whose range is found at once
constexpr float kHighest = 255;

struct Range {
  float low = 0, high = 0;
};

Range RangeOfPart(const float* x, int64_t n) {
  Range r;
  float low = 0, high = 0;
#pragma omp simd reduction(min : low) reduction(max : high)
  for (int64_t i = 0; i < n; ++i) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
  r.low = low;
  r.high = high;
  return r;
}

Range RangeOfAll(const float* x, int64_t n) {
  const int64_t parts = (n + kPart - 1) / kPart;
  std::vector<Range> ranges(parts);
  ParallelFor(parts, 4, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      ranges[p] = RangeOfPart(x + p * kPart, std::min(kPart, n - p * kPart));
    }
  });
  Range all;
  for (const Range& r : ranges) {
    all.low = std::min(all.low, r.low);
    all.high = std::max(all.high, r.high);
  }
  return all;
}

uint8_t Saturated(float v) {
  v = v > 0 ? v : 0;  // NaN too
  return static_cast<uint8_t>(v < kHighest ? v : kHighest);
}

}  // namespace

absl::StatusOr<Kernel> MakeDynamicQuantizeLinear(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  if (request.inputs[0].dtype != DType::kFloat) {
    return NodeUnimplemented(request.node, "no kernel for other types than float");
  }
  const Shape shape = request.in(0);
  const std::vector<OutputSlot> slots = {{request, 0}, {request, 1}, {request, 2}};
  const Shape shapes[] = {shape, Shape(), Shape()};
  for (int i = 0; i < 3; ++i) {
    if (slots[i].wanted()) ONWARD_RETURN_IF_ERROR(slots[i].Accepts(shapes[i]));
  }
  Kernel kernel;
  kernel.run = [slots, shape](const KernelCall& call) -> absl::Status {
    const float* x = call.inputs[0]->data<float>();
    const Range range = RangeOfAll(x, shape.elements());
    const float scale = (range.high - range.low) / kHighest;
    const float zero = Saturated(std::nearbyint(0 - range.low / scale));
    if (slots[0].wanted()) {
      ONWARD_ASSIGN_OR_RETURN(Tensor * y, slots[0].Get(call, shape));
      uint8_t* to = y->data<uint8_t>();
      ParallelFor(shape.elements(), kPart, [&](int64_t begin, int64_t end) {
        QuantizeBytes(x + begin, end - begin, scale, zero, to + begin);
      });
    }
    if (slots[1].wanted()) {
      ONWARD_ASSIGN_OR_RETURN(Tensor * y, slots[1].Get(call, Shape()));
      *y->data<float>() = scale;
    }
    if (slots[2].wanted()) {
      ONWARD_ASSIGN_OR_RETURN(Tensor * y, slots[2].Get(call, Shape()));
      *y->data<uint8_t>() = static_cast<uint8_t>(zero);
    }
    return absl::OkStatus();
  };
  return kernel;
}

}  // namespace onward
