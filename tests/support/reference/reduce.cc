// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <set>

#include "tests/support/reference/evaluate.h"

namespace onward::reference {
namespace {

std::set<int> ReducedAxes(const Call& c) {
  std::set<int> axes;
  if (c.Has(1)) {
    for (const int64_t axis : c.in[1].Ints()) axes.insert(Axis(axis, c.in[0].rank()));
  }
  if (axes.empty() && c.node.Int("noop_with_empty_axes", 0) == 0) {
    for (int d = 0; d < c.in[0].rank(); ++d) axes.insert(d);
  }
  return axes;
}

// The numbers that fall together, in order, become one.
template <Number (*F)(const std::vector<Number>&)>
Arrays Reduce(const Call& c) {
  const Array& x = c.in[0];
  const std::set<int> axes = ReducedAxes(c);
  Shape kept = x.shape, result;
  for (int d = 0; d < x.rank(); ++d) {
    if (axes.contains(d)) kept[d] = 1;
    if (!axes.contains(d) || c.node.Int("keepdims", 1) != 0) result.push_back(kept[d]);
  }
  std::vector<std::vector<Number>> groups(kept.elements());
  const Array places(DType::kInt64, kept);
  ForEach(x.shape, [&](const Index& at) {
    Index to = at;
    for (const int axis : axes) to[axis] = 0;
    groups[places.Offset(to)].push_back(x[at]);
  });
  Array y(x.dtype, result);
  for (size_t i = 0; i < groups.size(); ++i) y.values[i] = F(groups[i]);
  return {y};
}

Number Sum(const std::vector<Number>& v) {
  Number sum = 0;
  for (const Number x : v) sum += x;
  return sum;
}
Number Mean(const std::vector<Number>& v) { return Sum(v) / static_cast<Number>(v.size()); }
Number Prod(const std::vector<Number>& v) {
  Number product = 1;
  for (const Number x : v) product *= x;
  return product;
}
Number Max(const std::vector<Number>& v) {
  Number largest = v[0];
  for (const Number x : v) largest = std::isnan(x) || x > largest ? x : largest;
  return largest;
}
Number Min(const std::vector<Number>& v) {
  Number smallest = v[0];
  for (const Number x : v) smallest = std::isnan(x) || x < smallest ? x : smallest;
  return smallest;
}
Number L1(const std::vector<Number>& v) {
  Number sum = 0;
  for (const Number x : v) sum += std::fabs(x);
  return sum;
}
Number SumSquare(const std::vector<Number>& v) {
  Number sum = 0;
  for (const Number x : v) sum += x * x;
  return sum;
}
Number L2(const std::vector<Number>& v) { return std::sqrt(SumSquare(v)); }
Number LogSum(const std::vector<Number>& v) { return std::log(Sum(v)); }
Number LogSumExp(const std::vector<Number>& v) {
  Number sum = 0;
  for (const Number x : v) sum += std::exp(x);
  return std::log(sum);
}

// The index of the extreme one along an axis; of equals, the first or the last.
template <bool largest>
Arrays ArgExtreme(const Call& c) {
  const Array& x = c.in[0];
  const int axis = Axis(c.node.Int("axis", 0), x.rank());
  const bool last = c.node.Int("select_last_index", 0) != 0;
  Shape kept = x.shape, result;
  kept[axis] = 1;
  for (int d = 0; d < x.rank(); ++d) {
    if (d != axis || c.node.Int("keepdims", 1) != 0) result.push_back(kept[d]);
  }
  Array y = Make(DType::kInt64, kept, [&](const Index& at) {
    int64_t best = 0;
    for (int64_t i = 1; i < x.shape[axis]; ++i) {
      const Number here = x[With(at, axis, i)], there = x[With(at, axis, best)];
      if ((largest ? here > there : here < there) || (last && here == there)) best = i;
    }
    return static_cast<Number>(best);
  });
  y.shape = result;
  return {y};
}

template <bool product>
Arrays Cumulate(const Call& c) {
  const Array& x = c.in[0];
  const int axis = Axis(c.in[1].Ints()[0], x.rank());
  const bool reverse = c.node.Int("reverse", 0) != 0;
  const bool exclusive = c.node.Int("exclusive", 0) != 0;
  return {Make(x.dtype, x.shape, [&](const Index& at) {
    Number result = product ? 1 : 0;
    for (int64_t i = 0; i < x.shape[axis]; ++i) {
      const int64_t before = reverse ? i - at[axis] : at[axis] - i;
      if (before < 0 || (exclusive && before == 0)) continue;
      const Number v = x[With(at, axis, i)];
      result = product ? result * v : result + v;
    }
    return result;
  })};
}

// exp(x) / sum of exp(x) along the axis, or its logarithm.
template <bool logarithm>
Arrays Softmax(const Call& c) {
  const Array& x = c.in[0];
  const int axis = Axis(c.node.Int("axis", -1), x.rank());
  return {Make(x.dtype, x.shape, [&](const Index& at) {
    Number sum = 0;
    for (int64_t i = 0; i < x.shape[axis]; ++i) sum += std::exp(x[With(at, axis, i)]);
    return logarithm ? x[at] - std::log(sum) : std::exp(x[at]) / sum;
  })};
}

// 1 at the first of the largest, else 0.
Arrays Hardmax(const Call& c) {
  const Array& x = c.in[0];
  const int axis = Axis(c.node.Int("axis", -1), x.rank());
  return {Make(x.dtype, x.shape, [&](const Index& at) {
    int64_t best = 0;
    for (int64_t i = 1; i < x.shape[axis]; ++i) {
      if (x[With(at, axis, i)] > x[With(at, axis, best)]) best = i;
    }
    return static_cast<Number>(at[axis] == best);
  })};
}

}  // namespace

const Table& ReduceTable() {
  static const auto* const table = new Table{
      {"ReduceSum", Reduce<Sum>},
      {"ReduceMean", Reduce<Mean>},
      {"ReduceProd", Reduce<Prod>},
      {"ReduceMax", Reduce<Max>},
      {"ReduceMin", Reduce<Min>},
      {"ReduceL1", Reduce<L1>},
      {"ReduceL2", Reduce<L2>},
      {"ReduceSumSquare", Reduce<SumSquare>},
      {"ReduceLogSum", Reduce<LogSum>},
      {"ReduceLogSumExp", Reduce<LogSumExp>},
      {"ArgMax", ArgExtreme<true>},
      {"ArgMin", ArgExtreme<false>},
      {"CumSum", Cumulate<false>},
      {"CumProd", Cumulate<true>},
      {"Softmax", Softmax<false>},
      {"LogSoftmax", Softmax<true>},
      {"Hardmax", Hardmax},
  };
  return *table;
}

}  // namespace onward::reference
