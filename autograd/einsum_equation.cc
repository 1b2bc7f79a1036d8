// SPDX-License-Identifier: Apache-2.0
#include "autograd/einsum_equation.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/base/status.h"

namespace onward {
namespace {

absl::Status CheckTerm(std::string_view term) {
  for (const char c : term) {
    if (absl::ascii_isalpha(static_cast<unsigned char>(c)) || c == kEllipsis) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "'", std::string(1, c), "' in an equation is neither a letter nor an ellipsis"));
  }
  if (std::count(term.begin(), term.end(), kEllipsis) > 1) {
    return absl::InvalidArgumentError("a term of an equation has more than one ellipsis");
  }
  return absl::OkStatus();
}

// Without "->" the result has the letters that occur once, in alphabetical order, after the
// ellipsis.
std::string ImplicitOutput(const std::vector<std::string>& inputs) {
  std::map<char, int> uses;
  for (const std::string& term : inputs) {
    for (const char c : term) ++uses[c];
  }
  std::string output(uses.erase(kEllipsis), kEllipsis);
  for (const auto& [letter, count] : uses) {
    if (count == 1) output.push_back(letter);
  }
  return output;
}

absl::Status CheckOutput(const EinsumEquation& equation) {
  const std::string all = absl::StrJoin(equation.inputs, "");
  std::set<char> seen;
  for (const char c : equation.output) {
    if (!seen.insert(c).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", std::string(1, c), "' stands twice in the result of an equation"));
    }
    if (all.find(c) == std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", std::string(1, c), "' of an equation's result is in no operand"));
    }
  }
  return absl::OkStatus();
}

std::string TermText(const std::string& term) {
  return absl::StrReplaceAll(term, {{std::string(1, kEllipsis), "..."}});
}

}  // namespace

std::string EinsumEquation::ToString() const {
  std::vector<std::string> terms;
  for (const std::string& term : inputs) terms.push_back(TermText(term));
  return absl::StrCat(absl::StrJoin(terms, ","), "->", TermText(output));
}

absl::StatusOr<EinsumEquation> ParseEinsum(std::string_view text) {
  // A lone dot is no ellipsis: it becomes what no term may hold.
  const std::string plain = absl::StrReplaceAll(
      std::string(text), {{" ", ""}, {"...", std::string(1, kEllipsis)}, {".", "?"}});
  const std::vector<std::string> sides = absl::StrSplit(plain, absl::MaxSplits("->", 1));
  EinsumEquation equation;
  equation.inputs = absl::StrSplit(sides[0], ',');
  for (const std::string& term : equation.inputs) ONWARD_RETURN_IF_ERROR(CheckTerm(term));
  equation.output = sides.size() == 1 ? ImplicitOutput(equation.inputs) : sides[1];
  ONWARD_RETURN_IF_ERROR(CheckTerm(equation.output));
  ONWARD_RETURN_IF_ERROR(CheckOutput(equation));
  return equation;
}

int64_t AxisOfTerm(std::string_view term, size_t at) {
  const size_t ellipsis = term.find(kEllipsis);
  const bool behind = ellipsis != std::string_view::npos && at > ellipsis;
  return behind ? static_cast<int64_t>(at) - static_cast<int64_t>(term.size())
                : static_cast<int64_t>(at);
}

}  // namespace onward
