// SPDX-License-Identifier: Apache-2.0
// onward ops: what is computed and differentiated.
#include <iostream>
#include <map>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "autograd/rule.h"
#include "cli/commands.h"
#include "cli/compute_flags.h"
#include "trainer/report/jsonl.h"

namespace onward {
namespace {

struct OperatorRow {
  std::vector<std::string> providers, types;  // of kernels, in the order they are tried
  std::string gradient = "-", second = "-";
};

void AddOnce(std::string word, std::vector<std::string>* words) {
  if (!absl::c_linear_search(*words, word)) words->push_back(std::move(word));
}

// (domain, operator) -> row, for all that has a kernel or a derivative.
std::map<std::pair<std::string, std::string>, OperatorRow> Rows(const Environment& environment) {
  std::map<std::pair<std::string, std::string>, OperatorRow> rows;
  for (const auto& [key, entries] : environment.cpu().kernels().all()) {
    OperatorRow& row = rows[key];
    for (const KernelTable::Entry& entry : entries) {
      AddOnce(entry.provider, &row.providers);
      for (const auto type : absl::StrSplit(entry.types, ", ", absl::SkipEmpty())) {
        AddOnce(std::string(type), &row.types);
      }
    }
    // A function is differentiated through what it is made of.
    const FunctionDef* def = environment.functions().Find(key.second, key.first);
    if (def != nullptr && (def->body || def->function)) row.gradient = row.second = "body";
  }
  // Run by the runtime itself, whatever their bodies hold.
  for (const char* op : {"If", "Loop", "Scan"}) rows[{"", op}] = {{"runtime"}, {"all"}};
  // What plugins define by a body alone.
  for (const auto& [key, def] : environment.functions().all()) {
    if (def.function == nullptr) continue;
    OperatorRow& row = rows[{key.domain, key.name}];
    if (row.gradient == "-") row.gradient = row.second = "body";
  }
  for (const auto& [key, entry] : environment.rules().all()) {
    OperatorRow& row = rows[key];
    // Gradients are graphs of operators with rules of their own.
    row.gradient = entry.rule ? "rule" : "zero";
    row.second = entry.rule ? "yes" : "zero";
  }
  return rows;
}

absl::StatusOr<int> RunOps(const Args& args, const Environment& environment) {
  constexpr char kLine[] = "%-39s  %-8s  %-12s  %-45s  %s\n";
  const bool json = args.Has("json");
  if (!json) {
    std::cout << absl::StrFormat(kLine, "operator", "gradient", "second order", "cpu kernels",
                                 "types");
  }
  for (const auto& [key, row] : Rows(environment)) {
    const std::string name =
        key.first.empty() ? key.second : absl::StrCat(key.first, ".", key.second);
    if (!json) {
      const auto list = [](const std::vector<std::string>& words) {
        return words.empty() ? std::string("-") : absl::StrJoin(words, ", ");
      };
      std::cout << absl::StrFormat(kLine, name, row.gradient, row.second, list(row.providers),
                                   list(row.types));
      continue;
    }
    JsonWriter w;
    w.BeginObject()
        .Field("operator", name)
        .Key("cpu")
        .Values(row.providers)
        .Key("types")
        .Values(row.types)
        .Field("gradient", row.gradient)
        .Field("second_order", row.second)
        .EndObject();
    std::cout << w.text() << "\n";
  }
  return 0;
}

}  // namespace

Command OpsCommand() {
  return InEnvironment(
      {.name = "ops",
       .summary = "table of operators: kernels, element types, gradient, second order",
       .arguments = {},
       .flags = {Flag::Switch("json", "print one JSON object per operator")},
       .example = "onward ops"},
      RunOps);
}

}  // namespace onward
