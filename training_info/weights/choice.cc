// SPDX-License-Identifier: Apache-2.0
#include "training_info/weights/choice.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "training_info/surgery/surgery.h"

namespace onward {

bool WeightChoice::Prepare(const std::vector<std::string>& outputs, Graph* graph) {
  if (LiftFromBodies(graph)) {
    notes_.push_back("moved float constants out of the bodies of If, Loop and Scan");
  }
  std::set<std::string> constants;
  std::vector<std::string> names;
  for (const WeightDecision& d : DecideWeights(*graph, outputs)) {
    const bool named = std::find(train_.begin(), train_.end(), d.name) != train_.end();
    if (d.in_constant && (d.trains || d.is_statistic || named)) constants.insert(d.name);
    if (d.trains || d.is_statistic || d.may_train) names.push_back(d.name);
  }
  if (LiftConstants(graph, constants)) {
    notes_.push_back("turned weights in Constant nodes into initializers");
  }
  std::erase_if(names, [&](const std::string& n) { return !graph->initializers.contains(n); });
  if (const auto shared = UnshareInitializers(graph, names); !shared.empty()) {
    notes_.push_back(absl::StrCat(
        "gave every reader of ", shared.size(), " uniformly filled initializers (", shared.front(),
        shared.size() > 1 ? ", ..." : "", ") a copy of its own: exporters merge equal tensors"));
  }
  RestoreLayers(outputs, graph);
  return !notes_.empty();
}

void WeightChoice::RestoreLayers(const std::vector<std::string>& outputs, Graph* graph) {
  std::vector<std::string> weights, tokens;
  for (const WeightDecision& d : DecideWeights(*graph, outputs)) {
    if (!d.trains || d.in_constant) continue;
    weights.push_back(d.name);
    // Layers may well hold one number everywhere.
    if (!d.layer_operand || !IsUniform(graph->initializers.at(d.name))) tokens.push_back(d.name);
  }
  const auto gone = [&](const std::string& n) { return !graph->initializers.contains(n); };
  for (const Tie& tie : SplitPaddedBiases(graph, weights)) {
    tied_.emplace(tie.kept, tie.copy);
    notes_.push_back(absl::StrCat("the second half of the bias '", tie.copy,
                                  "' is zero: it stays so, as in a layer with one bias"));
  }
  std::erase_if(tokens, gone);
  for (const Tie& tie : CollapseRepeatedRows(graph, tokens)) {
    tied_.emplace(tie.kept, tie.copy);
    notes_.push_back(
        absl::StrCat("'", tie.copy, "' repeats one row for each example: the row is the weight"));
  }
  std::erase_if(weights, gone);
  for (const Tie& tie : TieTransposedCopies(graph, weights)) {
    notes_.push_back(absl::StrCat("'", tie.copy, "' is '", tie.kept,
                                  "' transposed, number for number: they are one weight again"));
    tied_.emplace(tie.kept, tie.copy);
  }
}

bool WeightChoice::Means(const std::string& pattern, const std::string& name,
                         const Graph& graph) const {
  if (MatchesPattern(name, pattern)) return true;
  const std::string source = graph.ValueMetadata(name, kCopyOfKey);
  if (!source.empty() && MatchesPattern(source, pattern)) return true;
  const auto [first, last] = tied_.equal_range(name);
  return std::any_of(first, last, [&](const auto& t) { return MatchesPattern(t.second, pattern); });
}

bool WeightChoice::StoodForTensor(const std::string& value) const {
  return std::any_of(tied_.begin(), tied_.end(), [&](const auto& t) { return t.second == value; });
}

// A name takes any float initializer; a pattern takes weights, or, where it meets none,
// whatever else it meets.
std::set<std::string> WeightChoice::Wanted(const std::string& pattern, const Graph& graph) const {
  const bool is_name = pattern.find_first_of("*?") == std::string::npos;
  std::set<std::string> weights, others;
  if (is_name && never_.contains(pattern)) return {};
  for (const WeightDecision& d : decisions_) {
    if (d.is_statistic || d.in_constant || !Means(pattern, d.name, graph)) continue;
    (d.trains || is_name ? weights : others).insert(d.name);
  }
  return weights.empty() ? others : weights;
}

absl::StatusOr<std::vector<std::string>> WeightChoice::Choose(
    const std::vector<std::string>& outputs, const Graph& graph) {
  decisions_ = DecideWeights(graph, outputs);
  std::set<std::string> wanted = learning_;
  for (const WeightDecision& d : decisions_) {
    if (train_.empty() && learning_.empty() && d.trains && !d.in_constant) wanted.insert(d.name);
  }
  for (const std::string& pattern : train_) {
    const std::set<std::string> names = Wanted(pattern, graph);
    if (names.empty()) return NoMatch(pattern, graph);
    wanted.insert(names.begin(), names.end());
  }
  for (const std::string& name : never_) wanted.erase(name);
  for (const std::string& pattern : freeze_) {
    bool any = false;
    for (const WeightDecision& d : decisions_) {
      if (!Means(pattern, d.name, graph)) continue;
      any = true;
      wanted.erase(d.name);
    }
    if (!any) return NoMatch(pattern, graph);
  }
  if (wanted.empty()) return NothingToTrain(outputs);
  std::vector<std::string> trained(wanted.begin(), wanted.end());
  notes_.push_back(WeightSummary(decisions_, trained));
  return trained;
}

std::vector<std::string> WeightChoice::WeightNames() const {
  std::vector<std::string> names;
  for (const WeightDecision& d : decisions_) {
    if (d.trains) names.push_back(d.name);
  }
  return names;
}

absl::Status WeightChoice::NoMatch(const std::string& pattern, const Graph& graph) const {
  for (const WeightDecision& d : decisions_) {
    if (d.is_statistic && Means(pattern, d.name, graph)) {
      return absl::InvalidArgumentError(
          absl::StrCat("pattern '", pattern, "' means '", d.name, "', a ", d.reason,
                       ": training writes it back by itself, no gradient does"));
    }
  }
  if (never_.contains(pattern)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", pattern, "' has an adapter and stays as it is: train it, or adapt it"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "pattern '", pattern,
      "' matches no trainable initializer; there are: ", absl::StrJoin(WeightNames(), ", ")));
}

absl::Status WeightChoice::NothingToTrain(const std::vector<std::string>& outputs) const {
  const std::string output = absl::StrJoin(outputs, "', '");
  if (!WeightNames().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("every trainable initializer is frozen: ", kNothingToTrain));
  }
  const bool any = std::any_of(decisions_.begin(), decisions_.end(),
                               [](const WeightDecision& d) { return !d.is_statistic; });
  if (!any) {
    return absl::InvalidArgumentError(
        absl::StrCat("output '", output, "' depends on no float initializer: ", kNothingToTrain));
  }
  return absl::InvalidArgumentError(absl::StrCat("output '", output,
                                                 "' depends on no weight: ", kNothingToTrain, " (",
                                                 WeightSummary(decisions_, {}), ")"));
}

bool MatchesPattern(const std::string& name, const std::string& pattern) {
  size_t n = 0, p = 0, star = std::string::npos, mark = 0;
  while (n < name.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++n, ++p;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = n;
    } else if (star != std::string::npos) {
      p = star + 1;
      n = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string WeightSummary(const std::vector<WeightDecision>& decisions,
                          const std::vector<std::string>& trained) {
  constexpr size_t kShown = 4;
  const std::set<std::string> takes(trained.begin(), trained.end());
  std::vector<std::string> taken, left;
  size_t statistics = 0;
  for (const WeightDecision& d : decisions) {
    statistics += d.is_statistic ? 1 : 0;
    if (d.is_statistic) continue;
    // The reason of what a flag decided is the flag.
    const bool by_flag = d.trains != takes.contains(d.name);
    (takes.contains(d.name) ? taken : left)
        .push_back(absl::StrCat(d.name, " (", by_flag ? "as asked" : d.reason, ")"));
  }
  const auto list = [&](const std::vector<std::string>& names) {
    const size_t shown = std::min(names.size(), kShown);
    std::string text = absl::StrJoin(names.begin(), names.begin() + shown, ", ");
    if (names.size() > shown) absl::StrAppend(&text, " and ", names.size() - shown, " more");
    return text;
  };
  std::string text = absl::StrCat("trains ", taken.size(), " of ", taken.size() + left.size(),
                                  " float constants", taken.empty() ? "" : ": ", list(taken));
  if (left.empty()) return text;
  absl::StrAppend(&text, "; leaves ", list(left),
                  ". --train '*' --train NAME takes one of these, too; `onward inspect` lists all");
  return text;
}

}  // namespace onward
