// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string>

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

// The letters of a term, with digits for the axes that an ellipsis stands for.
std::string Spelled(const std::string& term, int rank) {
  const size_t dots = term.find("...");
  if (dots == std::string::npos) return term;
  const int covered = rank - static_cast<int>(term.size() - 3);
  std::string axes;
  for (int i = covered; i > 0; --i) axes.push_back(static_cast<char>('0' + i));
  return term.substr(0, dots) + axes + term.substr(dots + 3);
}

// The sum over all values of all letters.
Arrays Einsum(const Call& c) {
  std::string equation;
  for (const char letter : c.node.String("equation", "")) {
    if (letter != ' ') equation.push_back(letter);
  }
  const size_t arrow = equation.find("->");
  std::vector<std::string> terms(1);
  for (const char letter : equation.substr(0, arrow)) {
    if (letter == ',') {
      terms.emplace_back();
    } else {
      terms.back().push_back(letter);
    }
  }
  std::map<char, int64_t> sizes, uses;
  int covered = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    const int letters = static_cast<int>(terms[i].size());
    if (terms[i].find('.') != std::string::npos) {
      covered = std::max(covered, c.in[i].rank() - letters + 3);
    }
    terms[i] = Spelled(terms[i], c.in[i].rank());
    for (size_t k = 0; k < terms[i].size(); ++k) {
      int64_t& size = sizes[terms[i][k]];
      size = std::max(size, c.in[i].shape[static_cast<int>(k)]);
      ++uses[terms[i][k]];
    }
  }
  std::string output;
  if (arrow != std::string::npos) {
    output = equation.substr(arrow + 2);
    const int letters = static_cast<int>(output.size());
    output = Spelled(output, covered + letters - 3);
  } else {
    for (int i = covered; i > 0; --i) output.push_back(static_cast<char>('0' + i));
    for (const auto& [letter, count] : uses) {
      if (count == 1 && letter > '9') output.push_back(letter);
    }
  }
  std::string summed = output;
  Shape shape, all;
  for (const auto& [letter, size] : sizes) {
    if (output.find(letter) == std::string::npos) summed.push_back(letter);
  }
  for (const char letter : output) shape.push_back(sizes[letter]);
  for (const char letter : summed) all.push_back(sizes[letter]);
  Array y(c.in[0].dtype, shape);
  ForEach(all, [&](const Index& at) {
    Number product = 1;
    for (size_t i = 0; i < terms.size(); ++i) {
      Index from;
      for (size_t k = 0; k < terms[i].size(); ++k) {
        const int64_t place = at[summed.find(terms[i][k])];
        from.push_back(c.in[i].shape[static_cast<int>(k)] == 1 ? 0 : place);
      }
      product *= c.in[i][from];
    }
    y[Index(at.begin(), at.begin() + static_cast<int64_t>(output.size()))] += product;
  });
  return {y};
}

// By the first row.
Number Determinant(const std::vector<std::vector<Number>>& a) {
  if (a.empty()) return 1;
  Number sum = 0;
  for (size_t j = 0; j < a.size(); ++j) {
    std::vector<std::vector<Number>> minor;
    for (size_t i = 1; i < a.size(); ++i) {
      minor.push_back(a[i]);
      minor.back().erase(minor.back().begin() + static_cast<int64_t>(j));
    }
    sum += (j % 2 == 0 ? 1 : -1) * a[0][j] * Determinant(minor);
  }
  return sum;
}

Arrays Det(const Call& c) {
  const Array& x = c.in[0];
  const int stack = x.rank() - 2;
  const int64_t n = x.shape[stack];
  return {Make(x.dtype, Shape(x.shape.dims().subspan(0, stack)), [&](const Index& at) {
    std::vector<std::vector<Number>> a(n, std::vector<Number>(n));
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        Index from = at;
        from.push_back(i);
        from.push_back(j);
        a[i][j] = x[from];
      }
    }
    return Determinant(a);
  })};
}

}  // namespace

const Table& MatMulTable() {
  static const auto* const table =
      new Table{{"MatMul", MatMul}, {"Gemm", Gemm}, {"Einsum", Einsum}, {"Det", Det}};
  return *table;
}

}  // namespace onward::reference
