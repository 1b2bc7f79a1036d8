// SPDX-License-Identifier: Apache-2.0
#include "core/graph/einsum_equation.h"

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

// Sizes of letters, and of axes of ellipses: these are numbered from the right, below zero.
class Sizes {
 public:
  absl::Status Add(std::string_view term, const ValueType& type) {
    const bool has_ellipsis = term.find(kEllipsis) != std::string_view::npos;
    if (!type.has_rank) {
      unknown_ellipsis_ |= has_ellipsis;
      return absl::OkStatus();
    }
    const int covered = type.rank() - static_cast<int>(term.size()) + 1;
    if (has_ellipsis ? covered < 0 : covered != 1) {
      return absl::InvalidArgumentError(absl::StrCat("a term of ", term.size() - has_ellipsis,
                                                     " letters does not fit ", type.ToString()));
    }
    if (has_ellipsis) ellipsis_ = std::max(ellipsis_, covered);
    int axis = 0;
    for (const char c : term) {
      if (c != kEllipsis) {
        ONWARD_RETURN_IF_ERROR(Meet(c, type.dims[axis++]));
      }
      for (int k = covered; c == kEllipsis && k > 0; --k) {
        ONWARD_RETURN_IF_ERROR(Meet(-k, type.dims[axis++]));
      }
    }
    return absl::OkStatus();
  }

  // Whether it is known how many axes the term has.
  bool HasRank(std::string_view term) const {
    return !unknown_ellipsis_ || term.find(kEllipsis) == std::string_view::npos;
  }
  std::vector<Dim> Dims(std::string_view term) {
    std::vector<Dim> dims;
    for (const char c : term) {
      if (c != kEllipsis) dims.push_back(sizes_[c]);
      for (int k = ellipsis_; c == kEllipsis && k > 0; --k) dims.push_back(sizes_[-k]);
    }
    return dims;
  }

 private:
  absl::Status Meet(int label, const Dim& dim) {
    const auto [it, first] = sizes_.try_emplace(label, dim);
    Dim& met = it->second;
    if (first || met == dim || (label < 0 && dim.value == 1)) return absl::OkStatus();
    if (label < 0 && met.value == 1) {
      met = dim;
    } else if (met.known() && dim.known()) {
      if (met.value == dim.value) return absl::OkStatus();
      return absl::InvalidArgumentError(
          absl::StrCat("an axis is ", met.value, " in one operand and ", dim.value, " in another"));
    } else if (dim.known()) {
      met = dim;
    } else if (label < 0 && !met.known()) {
      met = Dim{};  // either may be 1
    }
    return absl::OkStatus();
  }

  std::map<int, Dim> sizes_;
  int ellipsis_ = 0;  // axes
  bool unknown_ellipsis_ = false;
};

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

absl::StatusOr<ValueType> EinsumType(const EinsumEquation& equation,
                                     absl::Span<const ValueType> operands) {
  if (operands.size() != equation.inputs.size()) {
    return absl::InvalidArgumentError("a term for each input is needed");
  }
  Sizes sizes;
  ValueType result;
  for (size_t i = 0; i < operands.size(); ++i) {
    ONWARD_RETURN_IF_ERROR(sizes.Add(equation.inputs[i], operands[i]));
    if (result.dtype == DType::kUndefined) result.dtype = operands[i].dtype;
  }
  result.has_rank = result.known() && sizes.HasRank(equation.output);
  if (result.has_rank) result.dims = sizes.Dims(equation.output);
  return result;
}

int64_t AxisOfTerm(std::string_view term, size_t at) {
  const size_t ellipsis = term.find(kEllipsis);
  const bool behind = ellipsis != std::string_view::npos && at > ellipsis;
  return behind ? static_cast<int64_t>(at) - static_cast<int64_t>(term.size())
                : static_cast<int64_t>(at);
}

}  // namespace onward
