// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/support/reference/evaluate.h"

namespace onward::reference {
namespace {

Arrays MatMul(const Call& c) {
  Array a = c.in[0], b = c.in[1];
  const bool row = a.rank() == 1, column = b.rank() == 1;
  if (row) a.shape = {1, a.shape[0]};
  if (column) b.shape = {b.shape[0], 1};
  const Shape stacks = Broadcast(Shape(a.shape.dims().subspan(0, a.rank() - 2)),
                                 Shape(b.shape.dims().subspan(0, b.rank() - 2)));
  const int64_t k = a.shape[a.rank() - 1];
  Shape shape = stacks;
  shape.push_back(a.shape[a.rank() - 2]);
  shape.push_back(b.shape[b.rank() - 1]);
  Array y = Make(a.dtype, shape, [&](const Index& at) {
    Number sum = 0;
    for (int64_t i = 0; i < k; ++i) {
      const int last = shape.rank() - 1;
      // The axis that is summed over may be of one element: nothing broadcasts along it.
      sum += a.Broadcast(With(at, last, i)) * b.Broadcast(With(at, last - 1, i));
    }
    return sum;
  });
  if (row || column) {
    y.shape = stacks;
    if (!row) y.shape.push_back(shape[shape.rank() - 2]);
    if (!column) y.shape.push_back(shape[shape.rank() - 1]);
  }
  return {y};
}

Arrays Gemm(const Call& c) {
  const Array &a = c.in[0], &b = c.in[1];
  const bool ta = c.node.Int("transA", 0) != 0, tb = c.node.Int("transB", 0) != 0;
  const Number alpha = c.node.Float("alpha", 1), beta = c.node.Float("beta", 1);
  const int64_t k = a.shape[ta ? 0 : 1];
  return {Make(a.dtype, {a.shape[ta ? 1 : 0], b.shape[tb ? 0 : 1]}, [&](const Index& at) {
    Number sum = 0;
    for (int64_t i = 0; i < k; ++i) {
      sum += a[ta ? Index{i, at[0]} : Index{at[0], i}] * b[tb ? Index{at[1], i} : Index{i, at[1]}];
    }
    return alpha * sum + (c.Has(2) ? beta * c.in[2].Broadcast(at) : 0);
  })};
}

}  // namespace

const Table& MatMulTable() {
  static const auto* const table = new Table{{"MatMul", MatMul}, {"Gemm", Gemm}};
  return *table;
}

}  // namespace onward::reference
