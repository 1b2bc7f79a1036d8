// SPDX-License-Identifier: Apache-2.0
// The body that the standard does not give for Einsum: diagonals as strided slices, sums over
// what one operand has alone, then products of pairs, as matrix products where they sum and
// element by element where they do not. An equation that is a matrix product becomes one MatMul.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/functions.h"
#include "core/graph/einsum_equation.h"

namespace onward {
namespace {

// A letter, or for an axis of an ellipsis the number of axes behind it there, below zero.
using Label = int;
using Labels = std::vector<Label>;

bool Has(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

struct Factor {
  Expr value;
  Labels labels;  // one for each axis
};

class Contraction {
 public:
  Contraction(GraphBuilder& b, const Node& call) : b_(b), call_(call) {}

  std::vector<Expr> Run(const std::vector<Expr>& in) {
    const absl::StatusOr<EinsumEquation> equation = ParseEinsum(call_.String("equation", ""));
    if (!equation.ok()) return Fail(std::string(equation.status().message()));
    if (equation->inputs.size() != in.size()) return Fail("a term for each input is needed");
    std::vector<Factor> factors;
    for (size_t i = 0; i < in.size(); ++i) {
      factors.push_back({Wide(in[i]), {}});
      if (!Read(equation->inputs[i], in[i], &factors.back().labels)) return {};
    }
    for (const char c : equation->output) Append(c, ellipsis_, &output_);
    for (Factor& factor : factors) {
      if (!DropBroadcast(&factor)) return {};
      TakeDiagonals(&factor);
    }
    while (factors.size() > 1) Join(&factors);
    SumAlone({}, &factors[0]);
    Arrange(output_, &factors[0]);
    return {Narrow(factors[0].value, in[0])};
  }

 private:
  // The order of operands is chosen among so many; more go from left to right.
  static constexpr size_t kChosen = 16;

  std::vector<Expr> Fail(const std::string& message) {
    FailAt(b_, call_, message);
    return {};
  }

  // Sums and products of integers start at 32 bits in the standard, and wrap alike.
  static bool IsNarrow(DType dtype) { return IsInteger(dtype) && DTypeBits(dtype) < 32; }
  static Expr Wide(const Expr& e) { return IsNarrow(e.dtype()) ? Cast(e, DType::kInt32) : e; }
  Expr Narrow(const Expr& e, const Expr& like) {
    if (IsNarrow(like.dtype())) return Cast(e, like.dtype());
    return e.name() == like.name() ? b_.Op("Identity", {e}) : e;
  }

  static void Append(char c, int ellipsis, Labels* labels) {
    if (c != kEllipsis) return labels->push_back(c);
    for (int k = ellipsis; k > 0; --k) labels->push_back(-k);
  }

  // The labels of an operand's axes, and the size that each stands for.
  bool Read(const std::string& term, const Expr& x, Labels* labels) {
    const std::optional<Shape> shape = x.type().StaticShape();
    const int covered = x.rank() - static_cast<int>(term.size()) + 1;
    const bool has_ellipsis = term.find(kEllipsis) != std::string::npos;
    if (!shape || (has_ellipsis ? covered < 0 : covered != 1)) {
      Fail(shape ? absl::StrCat("term '", term, "' does not fit shape ", shape->ToString())
                 : "needs the shapes of its inputs");
      return false;
    }
    if (has_ellipsis) ellipsis_ = std::max(ellipsis_, covered);
    for (const char c : term) Append(c, covered, labels);
    for (int i = 0; i < shape->rank(); ++i) {
      int64_t& size = sizes_.try_emplace((*labels)[i], (*shape)[i]).first->second;
      if (size == 1 && (*labels)[i] < 0) size = (*shape)[i];
      if (size == (*shape)[i] || ((*shape)[i] == 1 && (*labels)[i] < 0)) continue;
      Fail(absl::StrCat("an axis is ", size, " in one operand and ", (*shape)[i], " in another"));
      return false;
    }
    return true;
  }

  // Axes of an ellipsis that this operand has only once for all.
  bool DropBroadcast(Factor* f) {
    std::vector<int64_t> axes;
    Labels kept;
    for (int i = 0; i < static_cast<int>(f->labels.size()); ++i) {
      if (f->value.dim(i) != sizes_[f->labels[i]]) {
        axes.push_back(i);
      } else {
        kept.push_back(f->labels[i]);
      }
    }
    if (axes.empty()) return true;
    f->value = Squeeze(f->value, std::move(axes));
    f->labels = std::move(kept);
    return b_.status().ok();
  }

  int64_t Size(const Labels& labels) {
    int64_t size = 1;
    for (const Label label : labels) size *= sizes_[label];
    return size;
  }

  void Dims(const Labels& labels, std::vector<int64_t>* dims) {
    for (const Label label : labels) dims->push_back(sizes_[label]);
  }

  // The axes in this order.
  void Arrange(const Labels& order, Factor* f) {
    if (f->labels == order) return;
    f->value = Transpose(f->value, Permutation(f->labels, order));
    f->labels = order;
  }

  static std::vector<int64_t> Permutation(const Labels& from, const Labels& to) {
    std::vector<int64_t> perm;
    for (const Label label : to) {
      perm.push_back(std::find(from.begin(), from.end(), label) - from.begin());
    }
    return perm;
  }

  // [n, n] in a row is n * n elements, of which every (n + 1)-th is on the diagonal.
  void TakeDiagonals(Factor* f) {
    for (size_t second = 0; second < f->labels.size();) {
      const auto at = std::find(f->labels.begin(), f->labels.end(), f->labels[second]);
      const size_t first = at - f->labels.begin();
      if (first == second) {
        ++second;
        continue;
      }
      const Label label = f->labels[first];
      const int64_t n = sizes_[label];
      std::vector<int64_t> perm, dims;
      Labels rest;
      for (size_t i = 0; i < f->labels.size(); ++i) {
        if (i == first || i == second) continue;
        perm.push_back(static_cast<int64_t>(i));
        rest.push_back(f->labels[i]);
      }
      for (const size_t axis : {first, second}) perm.push_back(static_cast<int64_t>(axis));
      Dims(rest, &dims);
      dims.push_back(n * n);
      Expr flat = ReshapeTo(Transpose(f->value, std::move(perm)), dims);
      f->value = Slice(flat, b_.Ints({0}), b_.Ints({n * n}), b_.Ints({-1}), b_.Ints({n + 1}));
      rest.push_back(label);
      f->labels = std::move(rest);
      second = 0;
    }
  }

  Expr ReshapeTo(const Expr& e, std::vector<int64_t> dims) {
    const std::optional<Shape> shape = e.type().StaticShape();
    if (shape && Shape(dims) == *shape) return e;
    return b_.Op("Reshape", {e, b_.Ints(std::move(dims))}, {{"allowzero", 1}});
  }

  // Sums over what neither the result nor the other factors have.
  void SumAlone(const std::vector<const Factor*>& others, Factor* f) {
    std::vector<int64_t> axes;
    Labels kept;
    for (size_t i = 0; i < f->labels.size(); ++i) {
      const Label label = f->labels[i];
      const bool read = Has(output_, label) ||
                        std::any_of(others.begin(), others.end(),
                                    [&](const Factor* other) { return Has(other->labels, label); });
      if (read) {
        kept.push_back(label);
      } else {
        axes.push_back(static_cast<int64_t>(i));
      }
    }
    if (axes.empty()) return;
    f->value = ReduceSum(f->value, std::move(axes), /*keepdims=*/false);
    f->labels = std::move(kept);
  }

  // In the order of the result, then as they come.
  Labels Sorted(Labels labels) {
    std::stable_sort(labels.begin(), labels.end(),
                     [&](Label a, Label b) { return Place(a) < Place(b); });
    return labels;
  }
  size_t Place(Label label) {
    return std::find(output_.begin(), output_.end(), label) - output_.begin();
  }

  // Replaces the two factors whose product is smallest by their product.
  void Join(std::vector<Factor>* factors) {
    const size_t n = factors->size();
    size_t left = 0, right = 1;
    double least = -1;
    for (size_t i = 0; n <= kChosen && i < n; ++i) {
      for (size_t j = i + 1; j < n; ++j) {
        std::set<Label> all((*factors)[i].labels.begin(), (*factors)[i].labels.end());
        all.insert((*factors)[j].labels.begin(), (*factors)[j].labels.end());
        double cost = 1;
        for (const Label label : all) cost *= static_cast<double>(sizes_[label]);
        if (least >= 0 && cost >= least) continue;
        least = cost;
        left = i;
        right = j;
      }
    }
    Factor a = std::move((*factors)[left]), b = std::move((*factors)[right]);
    factors->erase(factors->begin() + static_cast<int64_t>(right));
    factors->erase(factors->begin() + static_cast<int64_t>(left));
    std::vector<const Factor*> others;
    for (const Factor& f : *factors) others.push_back(&f);
    const auto with = [&](const Factor& other) {
      std::vector<const Factor*> all = others;
      all.push_back(&other);
      return all;
    };
    SumAlone(with(b), &a);
    SumAlone(with(a), &b);
    Labels later = output_;
    for (const Factor* f : others) later.insert(later.end(), f->labels.begin(), f->labels.end());
    factors->insert(factors->begin(), Product(std::move(a), std::move(b), later));
  }

  Factor Product(Factor a, Factor b, const Labels& later) {
    Labels both, summed, left, right;
    for (const Label label : a.labels) {
      (!Has(b.labels, label) ? left : Has(later, label) ? both : summed).push_back(label);
    }
    for (const Label label : b.labels) {
      if (!Has(a.labels, label)) right.push_back(label);
    }
    both = Sorted(std::move(both));
    left = Sorted(std::move(left));
    right = Sorted(std::move(right));
    if (summed.empty()) return ElementProduct(std::move(a), std::move(b));
    if (!left.empty() && !right.empty() && Place(right[0]) < Place(left[0])) {
      std::swap(a, b);
      std::swap(left, right);
    }
    return MatrixProduct(std::move(a), std::move(b), both, summed, left, right);
  }

  // [both, left, summed] x [both, summed, right].
  Factor MatrixProduct(Factor a, Factor b, const Labels& both, const Labels& summed,
                       const Labels& left, const Labels& right) {
    const auto joined = [](Labels labels, const Labels& more, const Labels& last) {
      labels.insert(labels.end(), more.begin(), more.end());
      labels.insert(labels.end(), last.begin(), last.end());
      return labels;
    };
    Arrange(joined(both, left, summed), &a);
    Arrange(joined(both, summed, right), &b);
    std::vector<int64_t> a_dims, b_dims, dims;
    Dims(both, &a_dims);
    Dims(both, &b_dims);
    // Many rows need not be merged where all of them meet one matrix.
    if (both.empty() && !left.empty()) {
      Dims(left, &a_dims);
    } else {
      a_dims.push_back(Size(left));
    }
    a_dims.push_back(Size(summed));
    b_dims.push_back(Size(summed));
    b_dims.push_back(Size(right));
    Expr product = MatMul(ReshapeTo(a.value, a_dims), ReshapeTo(b.value, b_dims));
    Labels labels = joined(both, left, right);
    Dims(labels, &dims);
    return {ReshapeTo(product, std::move(dims)), std::move(labels)};
  }

  Factor ElementProduct(Factor a, Factor b) {
    Labels labels = a.labels;
    for (const Label label : b.labels) {
      if (!Has(labels, label)) labels.push_back(label);
    }
    labels = Sorted(std::move(labels));
    const auto spread = [&](Factor& f) {
      Labels order;
      std::vector<int64_t> dims;
      for (const Label label : labels) {
        const bool has = Has(f.labels, label);
        if (has) order.push_back(label);
        dims.push_back(has ? sizes_[label] : 1);
      }
      Arrange(order, &f);
      return ReshapeTo(f.value, std::move(dims));
    };
    Expr left = spread(a);
    return {left * spread(b), std::move(labels)};
  }

  GraphBuilder& b_;
  const Node& call_;
  std::map<Label, int64_t> sizes_;
  Labels output_;
  int ellipsis_ = 0;  // axes
};

std::vector<Expr> Einsum(GraphBuilder& b, const Node& call, const std::vector<Expr>& in) {
  return Contraction(b, call).Run(in);
}

}  // namespace

void RegisterEinsumFunctions(FunctionLibrary& library) {
  library.Add("Einsum",
              {.body = Einsum,
               .output_like = {},
               .shape_only = {},
               .attributes = {"equation"},
               .required = 1,
               .operands = "."},
              /*domain=*/"");
}

}  // namespace onward
