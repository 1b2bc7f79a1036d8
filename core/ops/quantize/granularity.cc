// SPDX-License-Identifier: Apache-2.0
#include "core/ops/quantize/granularity.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/small_float.h"
#include "core/base/status.h"
#include "core/ops/movement/movement.h"
#include "core/tensor/dispatch.h"
#include "core/tensor/packed.h"

namespace onward {
namespace {

absl::Status Misfit(const Node& node, const Shape& x, const Shape& scale,
                    const std::string& expected) {
  return NodeError(node, absl::StrCat("the scale has shape ", scale.ToString(), ", but x ",
                                      x.ToString(), " needs ", expected));
}

}  // namespace

absl::StatusOr<Granularity> GranularityOf(const Node& node, const Shape& x, const Shape& scale) {
  Granularity g;
  g.elements = x.elements();
  const int64_t block = node.Int("block_size", 0);
  if (block < 0) {
    return NodeError(node, absl::StrCat("block_size is ", block, ", expected 0 or more"));
  }
  if (block == 0 && scale.rank() <= 1 && scale.elements() == 1) {
    g.run = std::max<int64_t>(g.elements, 1);
    return g;
  }
  const absl::StatusOr<int> found = NormalizeAxis(node.Int("axis", 1), x.rank());
  if (!found.ok()) return AtNode(node, found.status());
  const int axis = *found;
  const int64_t size = x[axis], inner = std::max<int64_t>(1, x.elements(axis + 1, x.rank()));
  if (block == 0) {
    if (scale != Shape{size}) {
      return Misfit(node, x, scale,
                    absl::StrCat("one element, or ", size, " for axis ", axis,
                                 " (a scale of more axes is blocked: it needs block_size)"));
    }
    g.axis = size;
    g.run = inner == 1 ? std::max<int64_t>(size, 1) : inner;
    g.advances = inner == 1;
    return g;
  }
  Shape expected = x;
  expected[axis] = size == 0 ? 0 : (size - 1) / block + 1;
  if (scale != expected) return Misfit(node, x, scale, expected.ToString());
  g.blocked = true;
  g.blocks = expected[axis];
  g.width = inner;
  if (inner == 1 && size % block == 0) {
    g.run = block;
    g.axis = g.blocks;
  } else {
    g.run = inner;
    g.advances = true;
    g.axis = size;
    g.block = block;
  }
  return g;
}

absl::Status CheckZeroPoint(const KernelRequest& request, int scale, int zero) {
  if (!request.HasInput(zero)) return absl::OkStatus();
  const Shape &s = request.in(scale), &z = request.in(zero);
  if (s == z || (s.elements() == 1 && z.elements() == 1)) return absl::OkStatus();
  return NodeError(request.node, absl::StrCat("the zero point has shape ", z.ToString(),
                                              ", the scale has ", s.ToString()));
}

std::vector<float> FloatsOf(const Tensor& t) {
  std::vector<float> floats(t.elements());
  if (IsSmall(t.dtype())) {
    const Tensor codes = Unpacked(t);
    const SmallValues& values = SmallValuesOf(t.dtype());
    for (size_t i = 0; i < floats.size(); ++i) floats[i] = values[codes.data<uint8_t>()[i]];
  }
  DispatchNumeric(t.dtype(), [&]<typename T>() {
    for (size_t i = 0; i < floats.size(); ++i) floats[i] = static_cast<float>(t.data<T>()[i]);
  });
  return floats;
}

}  // namespace onward
