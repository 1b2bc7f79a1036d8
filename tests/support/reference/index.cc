// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/reference/evaluate.h"

namespace onward::reference {
namespace {

int64_t Wrapped(Number index, int64_t size) {
  const auto i = static_cast<int64_t>(index);
  return i < 0 ? i + size : i;
}

Arrays Gather(const Call& c) {
  const Array &x = c.in[0], &indices = c.in[1];
  const int axis = Axis(c.node.Int("axis", 0), x.rank()), many = indices.rank();
  Shape shape(x.shape.dims().subspan(0, axis));
  for (const int64_t dim : indices.shape) shape.push_back(dim);
  for (int d = axis + 1; d < x.rank(); ++d) shape.push_back(x.shape[d]);
  return {Make(x.dtype, shape, [&](const Index& at) {
    const Index which(at.begin() + axis, at.begin() + axis + many);
    Index from(at.begin(), at.begin() + axis);
    from.push_back(Wrapped(indices[which], x.shape[axis]));
    from.insert(from.end(), at.begin() + axis + many, at.end());
    return x[from];
  })};
}

Arrays GatherElements(const Call& c) {
  const Array &x = c.in[0], &indices = c.in[1];
  const int axis = Axis(c.node.Int("axis", 0), x.rank());
  return {Make(x.dtype, indices.shape, [&](const Index& at) {
    return x[With(at, axis, Wrapped(indices[at], x.shape[axis]))];
  })};
}

// The index that the last axis of `indices` spells at `at`, behind `before` given ones.
Index Spelled(const Array& indices, Index at, Index before, const Shape& shape) {
  at.push_back(0);
  const auto batch = static_cast<int>(before.size());
  for (int64_t k = 0; k < indices.shape[indices.rank() - 1]; ++k) {
    at.back() = k;
    before.push_back(Wrapped(indices[at], shape[batch + static_cast<int>(k)]));
  }
  return before;
}

Arrays GatherND(const Call& c) {
  const Array &x = c.in[0], &indices = c.in[1];
  const auto batch = static_cast<int>(c.node.Int("batch_dims", 0));
  const int many = indices.rank() - 1;
  const int spelled = batch + static_cast<int>(indices.shape[many]);
  Shape shape(indices.shape.dims().subspan(0, many));
  for (int d = spelled; d < x.rank(); ++d) shape.push_back(x.shape[d]);
  return {Make(x.dtype, shape, [&](const Index& at) {
    const Index which(at.begin(), at.begin() + many), before(at.begin(), at.begin() + batch);
    Index from = Spelled(indices, which, before, x.shape);
    from.insert(from.end(), at.begin() + many, at.end());
    return x[from];
  })};
}

Number Reduced(const std::string& reduction, Number old, Number update) {
  if (reduction == "add") return old + update;
  if (reduction == "mul") return old * update;
  if (reduction == "max") return old > update ? old : update;
  if (reduction == "min") return old < update ? old : update;
  return update;
}

Arrays ScatterElements(const Call& c) {
  const Array &indices = c.in[1], &updates = c.in[2];
  const std::string reduction = c.node.String("reduction", "none");
  Array y = c.in[0];
  const int axis = Axis(c.node.Int("axis", 0), y.rank());
  ForEach(indices.shape, [&](const Index& at) {
    Number& to = y[With(at, axis, Wrapped(indices[at], y.shape[axis]))];
    to = Reduced(reduction, to, updates[at]);
  });
  return {y};
}

Arrays ScatterND(const Call& c) {
  const Array &indices = c.in[1], &updates = c.in[2];
  const std::string reduction = c.node.String("reduction", "none");
  const int many = indices.rank() - 1;
  Array y = c.in[0];
  ForEach(updates.shape, [&](const Index& at) {
    Index to = Spelled(indices, Index(at.begin(), at.begin() + many), {}, y.shape);
    to.insert(to.end(), at.begin() + many, at.end());
    y[to] = Reduced(reduction, y[to], updates[at]);
  });
  return {y};
}

Arrays TensorScatter(const Call& c) {
  const Array& update = c.in[1];
  Array y = c.in[0];
  const int axis = Axis(c.node.Int("axis", -2), y.rank());
  const bool circular = c.node.String("mode", "linear") == "circular";
  ForEach(update.shape, [&](const Index& at) {
    int64_t to = at[axis] + (c.Has(2) ? c.in[2].Ints()[at[0]] : 0);
    if (circular) to %= y.shape[axis];
    y[With(at, axis, to)] = update[at];
  });
  return {y};
}

Arrays OneHot(const Call& c) {
  const Array &indices = c.in[0], &values = c.in[2];
  const int64_t depth = c.in[1].Ints()[0];
  const int axis = Axis(c.node.Int("axis", -1), indices.rank() + 1);
  Shape shape(indices.shape.dims().subspan(0, axis));
  shape.push_back(depth);
  for (int d = axis; d < indices.rank(); ++d) shape.push_back(indices.shape[d]);
  return {Make(values.dtype, shape, [&](Index at) {
    const int64_t here = at[axis];
    at.erase(at.begin() + axis);
    return values.values[Wrapped(indices[at], depth) == here ? 1 : 0];
  })};
}

// Along the axis; of equals, the one with the lower index comes first.
Arrays TopK(const Call& c) {
  const Array& x = c.in[0];
  const int axis = Axis(c.node.Int("axis", -1), x.rank());
  const bool largest = c.node.Int("largest", 1) != 0;
  Shape shape = x.shape, rows = x.shape;
  shape[axis] = c.in[1].Ints()[0];
  rows[axis] = 1;
  Array values(x.dtype, shape), indices(DType::kInt64, shape);
  ForEach(rows, [&](const Index& row) {
    std::vector<int64_t> order(x.shape[axis]);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      const Number left = x[With(row, axis, a)], right = x[With(row, axis, b)];
      return largest ? left > right : left < right;
    });
    for (int64_t i = 0; i < shape[axis]; ++i) {
      values[With(row, axis, i)] = x[With(row, axis, order[i])];
      indices[With(row, axis, i)] = static_cast<Number>(order[i]);
    }
  });
  return {values, indices};
}

Arrays NonZero(const Call& c) {
  const Array& x = c.in[0];
  if (x.dtype == DType::kString) throw NotDefined("which texts are zero");
  std::vector<Index> found;
  ForEach(x.shape, [&](const Index& at) {
    if (x[at] != 0) found.push_back(at);
  });
  return {Make(DType::kInt64, {x.rank(), static_cast<int64_t>(found.size())},
               [&](const Index& at) { return static_cast<Number>(found[at[1]][at[0]]); })};
}

Arrays Compress(const Call& c) {
  Array x = c.in[0];
  if (!c.node.Has("axis")) x.shape = {x.size()};
  const int axis = Axis(c.node.Int("axis", 0), x.rank());
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < std::min(c.in[1].size(), x.shape[axis]); ++i) {
    if (c.in[1].values[i] != 0) kept.push_back(i);
  }
  Shape shape = x.shape;
  shape[axis] = static_cast<int64_t>(kept.size());
  return {Make(x.dtype, shape, [&](const Index& at) { return x[With(at, axis, kept[at[axis]])]; })};
}

// Of the slices along an axis, or of single elements where none is given.
Arrays Unique(const Call& c) {
  Array x = c.in[0];
  if (!c.node.Has("axis")) x.shape = {x.size()};
  const int axis = Axis(c.node.Int("axis", 0), x.rank());
  const int64_t n = x.shape[axis];
  std::vector<std::vector<Number>> slices(n);
  ForEach(x.shape, [&](const Index& at) { slices[at[axis]].push_back(x[at]); });
  std::vector<int64_t> firsts;  // of each group of equals
  for (int64_t i = 0; i < n; ++i) {
    const auto same = [&](int64_t other) { return slices[other] == slices[i]; };
    if (std::none_of(firsts.begin(), firsts.end(), same)) firsts.push_back(i);
  }
  if (c.node.Int("sorted", 1) != 0) {
    std::sort(firsts.begin(), firsts.end(),
              [&](int64_t a, int64_t b) { return slices[a] < slices[b]; });
  }
  Shape shape = x.shape;
  shape[axis] = static_cast<int64_t>(firsts.size());
  Array y =
      Make(x.dtype, shape, [&](const Index& at) { return x[With(at, axis, firsts[at[axis]])]; });
  Array indices(DType::kInt64, {shape[axis]}), inverse(DType::kInt64, {n}), counts = indices;
  for (size_t g = 0; g < firsts.size(); ++g) {
    indices.values[g] = static_cast<Number>(firsts[g]);
    for (int64_t i = 0; i < n; ++i) {
      if (slices[i] != slices[firsts[g]]) continue;
      inverse.values[i] = static_cast<Number>(g);
      counts.values[g] += 1;
    }
  }
  return {y, indices, inverse, counts};
}

}  // namespace

const Table& IndexTable() {
  static const auto* const table = new Table{
      {"Gather", Gather},
      {"GatherElements", GatherElements},
      {"GatherND", GatherND},
      {"ScatterElements", ScatterElements},
      {"ScatterND", ScatterND},
      {"OneHot", OneHot},
      {"TensorScatter", TensorScatter},
      {"TopK", TopK},
      {"NonZero", NonZero},
      {"Compress", Compress},
      {"Unique", Unique},
  };
  return *table;
}

}  // namespace onward::reference
