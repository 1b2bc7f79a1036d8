// SPDX-License-Identifier: Apache-2.0
#include "autograd/rules/einsum.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "autograd/shape_expr.h"
#include "core/base/status.h"

namespace onward {
namespace {

constexpr absl::string_view kEllipsis = "...";

// The subscripts of one operand or of the result.
struct Term {
  bool ellipsis = false;  // in front of the letters
  std::string letters;
  std::string ToString() const { return absl::StrCat(ellipsis ? kEllipsis : "", letters); }
};

struct Equation {
  std::vector<Term> inputs;
  Term output;
};

absl::StatusOr<Term> ParseTerm(absl::string_view text) {
  Term term;
  term.ellipsis = absl::ConsumePrefix(&text, kEllipsis);
  term.letters = std::string(text);
  if (absl::StrContains(text, '.')) {
    return absl::UnimplementedError("no gradient for an ellipsis that is not in front");
  }
  for (size_t i = 0; i < text.size(); ++i) {
    if (absl::StrContains(text.substr(i + 1), text[i])) {
      return absl::UnimplementedError(absl::StrCat("no gradient for the diagonal '", text, "'"));
    }
  }
  return term;
}

// Without "->" the result has the letters that occur once, in alphabetical
// order, after the ellipsis.
Term ImplicitOutput(const std::vector<Term>& inputs) {
  Term output;
  std::map<char, int> uses;
  for (const Term& term : inputs) {
    output.ellipsis |= term.ellipsis;
    for (char letter : term.letters) ++uses[letter];
  }
  for (const auto& [letter, count] : uses) {
    if (count == 1) output.letters.push_back(letter);
  }
  return output;
}

absl::StatusOr<Equation> ParseEquation(const std::string& text) {
  const std::string plain = absl::StrReplaceAll(text, {{" ", ""}});
  const std::vector<absl::string_view> sides = absl::StrSplit(plain, absl::MaxSplits("->", 1));
  Equation equation;
  for (absl::string_view part : absl::StrSplit(sides[0], ',')) {
    ONWARD_ASSIGN_OR_RETURN(Term term, ParseTerm(part));
    equation.inputs.push_back(std::move(term));
  }
  if (sides.size() == 1) {
    equation.output = ImplicitOutput(equation.inputs);
  } else {
    ONWARD_ASSIGN_OR_RETURN(equation.output, ParseTerm(sides[1]));
  }
  return equation;
}

Expr InputGrad(const Vjp& v, const Equation& equation, int input) {
  const Term& wanted = equation.inputs[input];
  std::vector<Expr> operands = {v.dy()};
  std::vector<std::string> terms = {equation.output.ToString()};
  std::string present = equation.output.letters;
  bool ellipsis = equation.output.ellipsis;
  for (int i = 0; i < v.inputs(); ++i) {
    if (i == input) continue;
    operands.push_back(v.x(i));
    terms.push_back(equation.inputs[i].ToString());
    absl::StrAppend(&present, equation.inputs[i].letters);
    ellipsis |= equation.inputs[i].ellipsis;
  }
  // Letters that only x_i has were summed over: the gradient is constant there.
  Term found;
  found.ellipsis = ellipsis;
  std::vector<int64_t> constant_axes;
  for (size_t k = 0; k < wanted.letters.size(); ++k) {
    if (absl::StrContains(present, wanted.letters[k])) {
      found.letters.push_back(wanted.letters[k]);
    } else {
      constant_axes.push_back(static_cast<int64_t>(k) -
                              static_cast<int64_t>(wanted.letters.size()));
    }
  }
  const std::string equation_text = absl::StrCat(absl::StrJoin(terms, ","), "->", found.ToString());
  Expr dx = operands.size() == 1 && terms[0] == found.ToString()
                ? v.dy()
                : v.b().Op("Einsum", std::move(operands), {{"equation", equation_text}});
  if (constant_axes.empty()) return dx;
  // Expand keeps broadcast ellipsis dimensions, which the engine sums.
  return Expand(Unsqueeze(dx, std::move(constant_axes)), ShapeVector(v.x(input)));
}

}  // namespace

Grads EinsumVjp(const Vjp& v) {
  absl::StatusOr<Equation> equation = ParseEquation(v.node().String("equation", ""));
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
