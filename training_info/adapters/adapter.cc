// SPDX-License-Identifier: Apache-2.0
#include "training_info/adapters/adapter.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/spec.h"
#include "core/base/status.h"

namespace onward {
namespace {

constexpr double kHighestRank = 65536;

const std::vector<NumberOption>& Options() {
  static const auto* const options = new std::vector<NumberOption>{
      {.name = "rank", .otherwise = 8, .low = 1, .high = kHighestRank, .integer = true},
      NumberOption::Positive("alpha", 8),
      NumberOption::Fraction("dropout", 0)};
  return *options;
}

// Where options begin, if there are any: names of weights may have colons of their own.
size_t OptionsOf(absl::string_view text) {
  const size_t colon = text.rfind(':');
  const bool options =
      colon != absl::string_view::npos && text.find('=', colon) != absl::string_view::npos;
  return options ? colon : absl::string_view::npos;
}

// The shortest text that reads back as the same number.
std::string NumberText(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

// A number of the metadata; `otherwise` where there is none, NaN where it means nothing.
double NumberOf(const Graph& graph, const std::string& value, const char* key, double otherwise) {
  const std::string text = graph.ValueMetadata(value, key);
  double number = otherwise;
  if (text.empty() || absl::SimpleAtod(text, &number)) return number;
  return std::numeric_limits<double>::quiet_NaN();
}

bool IsWhole(double x, double low, double high) {
  return x >= low && x <= high && x == std::floor(x);
}

}  // namespace

absl::StatusOr<LoraSpec> ParseLora(absl::string_view text) {
  const size_t colon = OptionsOf(text);
  LoraSpec spec;
  spec.pattern = std::string(text.substr(0, colon));
  if (spec.pattern.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected PATTERN or PATTERN:OPTION=VALUE,..., as in 'attention.*:rank=8,alpha=16', got '",
        text, "'"));
  }
  if (colon == absl::string_view::npos) return spec;
  ONWARD_ASSIGN_OR_RETURN(const SpecText given,
                          ParseSpecText(absl::StrCat("lora:", text.substr(colon + 1))));
  ONWARD_ASSIGN_OR_RETURN(const auto numbers, ParseNumbers("lora", given.options, Options()));
  spec.rank = static_cast<int64_t>(ValueOf(numbers, Options(), "rank"));
  spec.alpha = ValueOf(numbers, Options(), "alpha");
  spec.dropout = ValueOf(numbers, Options(), "dropout");
  return spec;
}

absl::Status CheckLora(const LoraSpec& spec) {
  return CheckNumbers(
      "lora",
      {{"rank", static_cast<double>(spec.rank)}, {"alpha", spec.alpha}, {"dropout", spec.dropout}},
      Options());
}

std::string Adapter::ToString() const {
  return use == 0 ? target : absl::StrCat(target, " (use ", use, ")");
}

std::vector<Adapter> FindAdapters(const Graph& graph) {
  std::map<std::pair<std::string, int>, Adapter> found;
  for (const auto& [name, tensor] : graph.initializers) {
    const std::string part = graph.ValueMetadata(name, kLoraPartKey);
    if (part != kLoraDown && part != kLoraUp) continue;
    const std::string target = graph.ValueMetadata(name, kLoraTargetKey);
    const double use = NumberOf(graph, name, kLoraUseKey, 0);
    if (target.empty() || !IsWhole(use, 0, std::numeric_limits<int>::max())) continue;
    Adapter& adapter = found[{target, static_cast<int>(use)}];
    adapter.target = target;
    adapter.use = static_cast<int>(use);
    (part == kLoraDown ? adapter.a : adapter.b) = name;
    if (part != kLoraDown) continue;
    const double rank = NumberOf(graph, name, kLoraRankKey, 0);
    adapter.rank = IsWhole(rank, 1, kHighestRank) ? static_cast<int64_t>(rank) : 0;
    adapter.alpha = NumberOf(graph, name, kLoraAlphaKey, 0);
    adapter.dropout = NumberOf(graph, name, kLoraDropoutKey, 0);
  }
  std::vector<Adapter> adapters;
  for (auto& [key, adapter] : found) {
    const bool complete = !adapter.a.empty() && !adapter.b.empty() && adapter.rank > 0 &&
                          std::isfinite(adapter.alpha) && adapter.dropout >= 0 &&
                          adapter.dropout < 1;
    if (complete) adapters.push_back(std::move(adapter));
  }
  return adapters;
}

void WriteMetadata(const Adapter& adapter, Graph* graph) {
  for (const auto& [name, part] :
       {std::pair(adapter.a, kLoraDown), std::pair(adapter.b, kLoraUp)}) {
    std::map<std::string, std::string>& entries = graph->metadata[name];
    entries[kLoraPartKey] = part;
    entries[kLoraTargetKey] = adapter.target;
    entries[kLoraRankKey] = absl::StrCat(adapter.rank);
    entries[kLoraAlphaKey] = NumberText(adapter.alpha);
    if (adapter.use != 0) entries[kLoraUseKey] = absl::StrCat(adapter.use);
    if (adapter.dropout != 0) entries[kLoraDropoutKey] = NumberText(adapter.dropout);
  }
}

}  // namespace onward
