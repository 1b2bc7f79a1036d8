// SPDX-License-Identifier: Apache-2.0
#include "autograd/rules/einsum.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/shape_expr.h"
#include "core/graph/einsum_equation.h"

namespace onward {
namespace {

bool Has(std::string_view letters, char letter) {
  return letters.find(letter) != std::string_view::npos;
}

// A letter that is not used.
std::optional<char> FreshLetter(std::string_view used) {
  for (const char c : std::string_view("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
    if (!Has(used, c)) return c;
  }
  return std::nullopt;
}

// The identity matrix as large as `axis` of x, in the type of `like`.
Expr Identity(const Expr& x, int64_t axis, const Expr& like) {
  Expr i = CountTo(DimScalar(x, axis));
  return CastLike(Equal(Unsqueeze(i, {1}), Unsqueeze(i, {0})), like);
}

// The axes that the ellipsis of a term is of x; none where the rank of x is not known.
std::optional<int64_t> Covered(const Expr& x, std::string_view term) {
  if (!Has(term, kEllipsis)) return 0;
  if (x.rank() < 0) return std::nullopt;
  return x.rank() - static_cast<int64_t>(term.size()) + 1;
}

// An Einsum that is being put together.
struct Sum {
  std::vector<Expr> operands;
  EinsumEquation equation;
  std::optional<int64_t> ellipsis = 0;  // axes of the longest one, as far as all are known

  void Add(const Expr& operand, std::string term) {
    const std::optional<int64_t> covered = Covered(operand, term);
    ellipsis = ellipsis && covered ? std::optional(std::max(*ellipsis, *covered)) : std::nullopt;
    operands.push_back(operand);
    equation.inputs.push_back(std::move(term));
  }
  std::string letters() const { return absl::StrJoin(equation.inputs, ""); }
};

// The term with each letter once; the sum gets the identity matrices that say which were one.
std::optional<std::string> SplitDiagonals(const Vjp& v, int input, const std::string& term,
                                          Sum* sum) {
  std::string single;
  for (size_t k = 0; k < term.size(); ++k) {
    if (!Has(single, term[k])) {
      single.push_back(term[k]);
      continue;
    }
    const std::optional<char> fresh = FreshLetter(absl::StrCat(sum->letters(), term, single));
    if (!fresh) return std::nullopt;
    sum->Add(Identity(v.x(input), AxisOfTerm(term, k), v.dy()), std::string{term[k], *fresh});
    single.push_back(*fresh);
  }
  return single;
}

Expr Alone(const Expr& x, const std::string& from, const std::string& to) {
  EinsumEquation equation;
  equation.inputs = {from};
  equation.output = to;
  return x.builder().Op("Einsum", {x}, {{"equation", equation.ToString()}});
}

// dx_i where the ellipses differ in how many axes they are, or may: with that of x_i in front,
// where it is broadcast and summed as any gradient, and then put back.
Expr GradInFront(const Expr& x, const std::string& wanted, Sum sum) {
  const std::string present = sum.letters();
  std::string& found = sum.equation.output;
  found = std::string{kEllipsis};
  std::string constant;  // letters that were summed over
  for (const char c : wanted) {
    if (c != kEllipsis) (Has(present, c) ? found : constant).push_back(c);
  }
  Expr dx = x.builder().Op("Einsum", sum.operands, {{"equation", sum.equation.ToString()}});
  std::vector<int64_t> last;
  for (size_t i = 0; i < constant.size(); ++i) last.push_back(-1 - static_cast<int64_t>(i));
  if (!last.empty()) dx = Unsqueeze(dx, std::move(last));
  const Expr moved = Alone(x, wanted, found + constant);
  return Alone(FitTo(Expand(dx, ShapeVector(moved)), moved), found + constant, wanted);
}

Expr InputGrad(const Vjp& v, const EinsumEquation& equation, int input) {
  Sum sum;
  sum.Add(v.dy(), equation.output);
  for (int i = 0; i < v.inputs(); ++i) {
    if (i != input) sum.Add(v.x(i), equation.inputs[i]);
  }
  const std::optional<std::string> wanted = SplitDiagonals(v, input, equation.inputs[input], &sum);
  if (!wanted) return v.b().Fail(absl::UnimplementedError("the equation uses every letter"));
  const std::string present = sum.letters();
  // What only x_i has was summed over: the gradient is constant there. Axes of an ellipsis that
  // x_i does not have come first, and the engine sums them.
  std::string& found = sum.equation.output;
  if (Has(present, kEllipsis) && !Has(*wanted, kEllipsis)) found.push_back(kEllipsis);
  std::vector<int64_t> constant_axes;
  Expr covered;  // axes of an ellipsis that the result does not have, where only the data tell
  const int64_t rank = v.x(input).rank();
  const std::optional<int64_t> own = Covered(v.x(input), *wanted);
  const bool ellipses = Has(present, kEllipsis) && Has(*wanted, kEllipsis);
  const bool in_front = wanted->starts_with(kEllipsis) && Has(equation.output, kEllipsis);
  if (ellipses && !in_front && !(own && own == sum.ellipsis)) {
    return GradInFront(v.x(input), *wanted, sum);
  }
  for (size_t k = 0; k < wanted->size(); ++k) {
    if (Has(present, (*wanted)[k])) {
      found.push_back((*wanted)[k]);
    } else if ((*wanted)[k] != kEllipsis) {
      const int64_t axis = AxisOfTerm(*wanted, k);
      constant_axes.push_back(!found.empty() && found[0] == kEllipsis && !Has(*wanted, kEllipsis)
                                  ? axis - static_cast<int64_t>(wanted->size())
                                  : axis);
    } else if (rank < 0) {
      GraphBuilder& b = v.b();
      const Expr count = SizeOf(ShapeOf(v.x(input)));
      const int64_t others = static_cast<int64_t>(wanted->size()) - 1;
      covered = CountTo(count - b.Int(others)) + b.Int(static_cast<int64_t>(k));
    } else {
      const int64_t count = rank - static_cast<int64_t>(wanted->size()) + 1;
      for (int64_t i = 0; i < count; ++i) {
        constant_axes.push_back(static_cast<int64_t>(k) + i);
      }
    }
  }
  const bool same = sum.operands.size() == 1 && sum.equation.inputs[0] == found;
  Expr dx =
      same ? v.dy() : v.b().Op("Einsum", sum.operands, {{"equation", sum.equation.ToString()}});
  if (covered.defined()) {
    const Expr axes = Concat({covered, v.b().Ints(constant_axes)}, 0);
    return Expand(v.b().Op("Unsqueeze", {dx, axes}), ShapeVector(v.x(input)));
  }
  if (constant_axes.empty()) return dx;
  // Expand keeps broadcast ellipsis dimensions, which the engine sums.
  return Expand(Unsqueeze(dx, std::move(constant_axes)), ShapeVector(v.x(input)));
}

}  // namespace

Grads EinsumVjp(const Vjp& v) {
  const absl::StatusOr<EinsumEquation> equation = ParseEinsum(v.node().String("equation", ""));
  if (!equation.ok()) return {v.b().Fail(equation.status())};
  if (static_cast<int>(equation->inputs.size()) != v.inputs()) {
    return {v.b().Fail(absl::InvalidArgumentError(absl::StrCat(
        "the equation has ", equation->inputs.size(), " operands, the node ", v.inputs())))};
  }
  Grads grads(v.inputs());
  for (int i = 0; i < v.inputs(); ++i) {
    if (v.needs(i)) grads[i] = InputGrad(v, *equation, i);
  }
  return grads;
}

}  // namespace onward
