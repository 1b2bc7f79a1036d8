// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "tests/support/reference/evaluate.h"

namespace onward::reference {
namespace {

Array Reshaped(const Array& x, Shape shape) {
  Array y = x;
  y.shape = std::move(shape);
  return y;
}

Arrays Reshape(const Call& c) {
  const std::vector<int64_t> wanted = c.in[1].Ints();
  const bool allow_zero = c.node.Int("allowzero", 0) != 0;
  Shape shape;
  int64_t known = 1;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const bool copied = wanted[i] == 0 && !allow_zero;
    shape.push_back(copied ? c.in[0].shape[static_cast<int>(i)] : wanted[i]);
    if (wanted[i] != -1) known *= shape[static_cast<int>(i)];
  }
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] == -1) shape[d] = c.in[0].size() / known;
  }
  return {Reshaped(c.in[0], shape)};
}

Arrays Flatten(const Call& c) {
  const Shape& x = c.in[0].shape;
  const int axis = Axis(c.node.Int("axis", 1), x.rank());
  return {Reshaped(c.in[0], {x.elements(0, axis), x.elements(axis, x.rank())})};
}

Arrays Squeeze(const Call& c) {
  std::set<int> axes;
  if (c.Has(1)) {
    for (const int64_t axis : c.in[1].Ints()) axes.insert(Axis(axis, c.in[0].rank()));
  }
  Shape shape;
  for (int d = 0; d < c.in[0].rank(); ++d) {
    const bool dropped = c.Has(1) ? axes.contains(d) : c.in[0].shape[d] == 1;
    if (!dropped) shape.push_back(c.in[0].shape[d]);
  }
  return {Reshaped(c.in[0], shape)};
}

Arrays Unsqueeze(const Call& c) {
  const std::vector<int64_t> wanted = c.in[1].Ints();
  const int rank = c.in[0].rank() + static_cast<int>(wanted.size());
  std::set<int> axes;
  for (const int64_t axis : wanted) axes.insert(Axis(axis, rank));
  Shape shape;
  for (int d = 0, from = 0; d < rank; ++d) {
    shape.push_back(axes.contains(d) ? 1 : c.in[0].shape[from++]);
  }
  return {Reshaped(c.in[0], shape)};
}

Arrays Expand(const Call& c) {
  const Shape shape = Broadcast(c.in[0].shape, Shape(c.in[1].Ints()));
  return {Make(c.in[0].dtype, shape, [&](const Index& at) { return c.in[0].Broadcast(at); })};
}

Arrays Tile(const Call& c) {
  const Array& x = c.in[0];
  const std::vector<int64_t> repeats = c.in[1].Ints();
  Shape shape;
  for (int d = 0; d < x.rank(); ++d) shape.push_back(x.shape[d] * repeats[d]);
  return {Make(x.dtype, shape, [&](Index at) {
    for (int d = 0; d < x.rank(); ++d) at[d] %= x.shape[d];
    return x[at];
  })};
}

Arrays Concat(const Call& c) {
  const int axis = Axis(c.node.Int("axis", 0), c.in[0].rank());
  Shape shape = c.in[0].shape;
  shape[axis] = 0;
  for (const Array& x : c.in) shape[axis] += x.shape[axis];
  return {Make(c.in[0].dtype, shape, [&](Index at) {
    size_t k = 0;
    while (at[axis] >= c.in[k].shape[axis]) at[axis] -= c.in[k++].shape[axis];
    return c.in[k][at];
  })};
}

Arrays Split(const Call& c) {
  const Array& x = c.in[0];
  const int axis = Axis(c.node.Int("axis", 0), x.rank());
  std::vector<int64_t> sizes;
  if (c.Has(1)) sizes = c.in[1].Ints();
  const int64_t parts = c.node.Int("num_outputs", c.outputs);
  const int64_t size = (x.shape[axis] + parts - 1) / parts;
  for (int64_t i = 0; !c.Has(1) && i < parts; ++i) {
    sizes.push_back(std::min(size, x.shape[axis] - i * size));
  }
  Arrays results;
  int64_t start = 0;
  for (const int64_t n : sizes) {
    Shape shape = x.shape;
    shape[axis] = n;
    results.push_back(
        Make(x.dtype, shape, [&](const Index& at) { return x[With(at, axis, at[axis] + start)]; }));
    start += n;
  }
  return results;
}

Arrays Transpose(const Call& c) {
  const Array& x = c.in[0];
  std::vector<int64_t> perm = c.node.Ints("perm");
  if (perm.empty()) {
    for (int d = x.rank() - 1; d >= 0; --d) perm.push_back(d);
  }
  Shape shape;
  for (const int64_t axis : perm) shape.push_back(x.shape[static_cast<int>(axis)]);
  return {Make(x.dtype, shape, [&](const Index& at) {
    Index from(at.size());
    for (size_t d = 0; d < at.size(); ++d) from[perm[d]] = at[d];
    return x[from];
  })};
}

Arrays DepthToSpace(const Call& c) {
  const Array& x = c.in[0];
  const int64_t b = c.node.Int("blocksize", 1);
  const bool crd = c.node.String("mode", "DCR") == "CRD";
  const int64_t depth = x.shape[1] / (b * b);
  const Shape shape = {x.shape[0], depth, x.shape[2] * b, x.shape[3] * b};
  return {Make(x.dtype, shape, [&](const Index& at) {
    const int64_t block = at[2] % b * b + at[3] % b;
    const int64_t channel = crd ? at[1] * b * b + block : block * depth + at[1];
    return x[{at[0], channel, at[2] / b, at[3] / b}];
  })};
}

Arrays SpaceToDepth(const Call& c) {
  const Array& x = c.in[0];
  const int64_t b = c.node.Int("blocksize", 1), depth = x.shape[1];
  const Shape shape = {x.shape[0], depth * b * b, x.shape[2] / b, x.shape[3] / b};
  return {Make(x.dtype, shape, [&](const Index& at) {
    const int64_t block = at[1] / depth;
    return x[{at[0], at[1] % depth, at[2] * b + block / b, at[3] * b + block % b}];
  })};
}

Arrays Trilu(const Call& c) {
  const Array& x = c.in[0];
  const int64_t k = c.Has(1) ? c.in[1].Ints()[0] : 0;
  const bool upper = c.node.Int("upper", 1) != 0;
  return {Make(x.dtype, x.shape, [&](const Index& at) {
    const int64_t diagonal = at[at.size() - 1] - at[at.size() - 2];
    return (upper ? diagonal >= k : diagonal <= k) ? x[at] : 0;
  })};
}

Arrays ReverseSequence(const Call& c) {
  const Array& x = c.in[0];
  const int batch = static_cast<int>(c.node.Int("batch_axis", 1));
  const int time = static_cast<int>(c.node.Int("time_axis", 0));
  const std::vector<int64_t> lengths = c.in[1].Ints();
  return {Make(x.dtype, x.shape, [&](const Index& at) {
    const int64_t n = lengths[at[batch]];
    return at[time] < n ? x[With(at, time, n - 1 - at[time])] : x[at];
  })};
}

// One axis of a slice: where it starts, how it goes on, how many there are.
struct Range {
  int64_t start = 0, step = 1, count = 0;
};

Range SliceOf(int64_t size, int64_t start, int64_t end, int64_t step) {
  const auto from_end = [&](int64_t v) { return v < 0 ? v + size : v; };
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  // An end before the first element stays before it.
  start = std::clamp(from_end(start), int64_t{0}, high);
  end = std::clamp(end < -size ? low : from_end(end), low, size);
  Range range{start, step, 0};
  for (int64_t i = start; step > 0 ? i < end : i > end; i += step) ++range.count;
  return range;
}

Arrays Slice(const Call& c) {
  const Array& x = c.in[0];
  const std::vector<int64_t> starts = c.in[1].Ints(), ends = c.in[2].Ints();
  std::vector<int64_t> axes(starts.size()), steps(starts.size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (c.Has(3)) axes = c.in[3].Ints();
  if (c.Has(4)) steps = c.in[4].Ints();
  std::vector<Range> ranges(x.rank());
  for (int d = 0; d < x.rank(); ++d) ranges[d].count = x.shape[d];
  for (size_t i = 0; i < starts.size(); ++i) {
    const int axis = Axis(axes[i], x.rank());
    ranges[axis] = SliceOf(x.shape[axis], starts[i], ends[i], steps[i]);
  }
  Shape shape;
  for (const Range& range : ranges) shape.push_back(range.count);
  return {Make(x.dtype, shape, [&](Index at) {
    for (size_t d = 0; d < at.size(); ++d) at[d] = ranges[d].start + at[d] * ranges[d].step;
    return x[at];
  })};
}

// Where a padded axis takes its element from; -1: the constant.
int64_t PadSource(const std::string& mode, int64_t i, int64_t size) {
  if (mode == "edge") return std::clamp<int64_t>(i, 0, size - 1);
  if (mode == "wrap") return ((i % size) + size) % size;
  if (mode != "reflect") return i >= 0 && i < size ? i : -1;
  while (i < 0 || i >= size) i = i < 0 ? -i : 2 * (size - 1) - i;
  return i;
}

Arrays Pad(const Call& c) {
  const Array& x = c.in[0];
  const std::string mode = c.node.String("mode", "constant");
  const std::vector<int64_t> given = c.in[1].Ints();
  std::vector<int64_t> axes(x.rank()), begin(x.rank()), end(x.rank());
  std::iota(axes.begin(), axes.end(), 0);
  if (c.Has(3)) axes = c.in[3].Ints();
  for (size_t i = 0; i < axes.size(); ++i) {
    begin[Axis(axes[i], x.rank())] = given[i];
    end[Axis(axes[i], x.rank())] = given[i + axes.size()];
  }
  Shape shape;
  for (int d = 0; d < x.rank(); ++d) shape.push_back(x.shape[d] + begin[d] + end[d]);
  const Number constant = c.Has(2) ? c.in[2].values[0] : 0;
  return {Make(x.dtype, shape, [&](Index at) {
    for (int d = 0; d < x.rank(); ++d) {
      at[d] = PadSource(mode, at[d] - begin[d], x.shape[d]);
      if (at[d] < 0) return constant;
    }
    return x[at];
  })};
}

Arrays RangeOf(const Call& c) {
  const Number start = c.in[0].values[0], limit = c.in[1].values[0], delta = c.in[2].values[0];
  const Number count = std::max(std::ceil((limit - start) / delta), Number{0});
  return {Make(c.in[0].dtype, {static_cast<int64_t>(count)},
               [&](const Index& at) { return start + static_cast<Number>(at[0]) * delta; })};
}

Arrays ShapeOf(const Call& c) {
  const int64_t rank = c.in[0].rank();
  const auto bound = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
  const int64_t start = bound(c.node.Int("start", 0)), end = bound(c.node.Int("end", rank));
  return {Make(DType::kInt64, {std::max<int64_t>(end - start, 0)}, [&](const Index& at) {
    return static_cast<Number>(c.in[0].shape[static_cast<int>(start + at[0])]);
  })};
}

Arrays SizeOf(const Call& c) {
  Array y(DType::kInt64, {});
  y.values[0] = static_cast<Number>(c.in[0].size());
  return {y};
}

Arrays Constant(const Call& c) {
  if (const Tensor* value = c.node.TensorAttribute("value")) return {FromTensor(*value)};
  throw std::runtime_error("no reference for this form of Constant");
}

Arrays ConstantOfShape(const Call& c) {
  const Tensor* value = c.node.TensorAttribute("value");
  const Array element = value == nullptr ? Array(DType::kFloat, {1}) : FromTensor(*value);
  return {
      Make(element.dtype, Shape(c.in[0].Ints()), [&](const Index&) { return element.values[0]; })};
}

Arrays EyeLike(const Call& c) {
  const auto given = static_cast<DType>(c.node.Int("dtype", 0));
  const int64_t k = c.node.Int("k", 0);
  return {Make(given == DType::kUndefined ? c.in[0].dtype : given, c.in[0].shape,
               [&](const Index& at) { return static_cast<Number>(at[1] - at[0] == k); })};
}

}  // namespace

const Table& MovementTable() {
  static const auto* const table = new Table{
      {"Reshape", Reshape},
      {"Flatten", Flatten},
      {"Squeeze", Squeeze},
      {"Unsqueeze", Unsqueeze},
      {"Expand", Expand},
      {"Tile", Tile},
      {"Concat", Concat},
      {"Split", Split},
      {"Transpose", Transpose},
      {"DepthToSpace", DepthToSpace},
      {"SpaceToDepth", SpaceToDepth},
      {"Trilu", Trilu},
      {"ReverseSequence", ReverseSequence},
      {"Slice", Slice},
      {"Pad", Pad},
      {"Range", RangeOf},
      {"Shape", ShapeOf},
      {"Size", SizeOf},
      {"Constant", Constant},
      {"ConstantOfShape", ConstantOfShape},
      {"EyeLike", EyeLike},
  };
  return *table;
}

}  // namespace onward::reference
