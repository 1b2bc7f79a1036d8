// SPDX-License-Identifier: Apache-2.0
// onward ops: what is computed and differentiated.
#include <iostream>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/commands.h"
#include "cli/compute_flags.h"
#include "environment/operator_table.h"
#include "trainer/report/log/jsonl.h"

namespace onward {
namespace {

std::string List(const std::vector<std::string>& words) {
  return words.empty() ? "-" : absl::StrJoin(words, ", ");
}

void PrintText(const std::vector<OperatorRow>& rows) {
  constexpr char kLine[] = "%-39s  %-8s  %-12s  %-45s  %s\n";
  std::cout << absl::StrFormat(kLine, "operator", "gradient", "second order", "cpu kernels",
                               "types");
  for (const OperatorRow& row : rows) {
    std::cout << absl::StrFormat(kLine, row.FullName(), row.gradient, row.second_order,
                                 List(row.providers), List(row.types));
    if (!row.reason.empty()) std::cout << "    " << row.reason << "\n";
  }
}

void PrintJson(const std::vector<OperatorRow>& rows) {
  for (const OperatorRow& row : rows) {
    JsonWriter w;
    w.BeginObject()
        .Field("operator", row.FullName())
        .Key("cpu")
        .Values(row.providers)
        .Key("types")
        .Values(row.types)
        .Field("gradient", row.gradient)
        .Field("second_order", row.second_order);
    if (row.since > 0) w.Field("since", row.since);
    if (!row.reason.empty()) w.Field("reason", row.reason);
    std::cout << w.EndObject().text() << "\n";
  }
}

void PrintMarkdownHead() {
  std::cout
      << "# Operators\n\n"
         "Written by `onward ops --markdown > docs/operators.md`; a test tells when it is "
         "stale.\n\n"
         "- **runs**: the kernels of the CPU in the order they are tried (`reference` is plain "
         "C++, "
         "`runtime` the executor itself); `body`: through the\n"
         "  function that defines the operator; `-`: it does not run.\n"
         "- **gradient**: `rule`; `body`: through the function that defines it; `zero`: it is zero "
         "wherever it exists; `none`, with the reason.\n"
         "- **second order**: whether the gradient has a gradient in turn. Rules emit operators "
         "that "
         "have one, which is tested for each of them.\n"
         "- \\*: the standard tags an input as differentiable.\n";
}

// "ai.onnx at opset 28: 203 operators, 180 run, 150 have a gradient."
void PrintMarkdownDomain(const std::string& domain, const std::vector<const OperatorRow*>& rows) {
  int run = 0, rules = 0, bodies = 0, zeros = 0;
  for (const OperatorRow* row : rows) {
    run += row->providers.empty() ? 0 : 1;
    rules += row->gradient == "rule" ? 1 : 0;
    bodies += row->gradient == "body" ? 1 : 0;
    zeros += row->gradient == "zero" ? 1 : 0;
  }
  std::cout << "\n## "
            << (domain.empty() ? absl::StrCat("ai.onnx, opset ", kCanonicalOpset) : domain)
            << "\n\n"
            << rows.size() << " operators: " << run << " run; the gradient is a rule for " << rules
            << ", a body for " << bodies << ", zero for " << zeros << ", none for "
            << static_cast<int>(rows.size()) - rules - bodies - zeros << ".\n\n"
            << "| operator | since | runs | types | gradient | second order "
               "|\n|---|---|---|---|---|---|\n";
  for (const OperatorRow* row : rows) {
    std::cout << "| " << row->name << (row->differentiable ? "\\*" : "") << " | "
              << (row->since > 0 ? absl::StrCat(row->since) : "") << " | " << List(row->providers)
              << " | " << List(row->types) << " | " << row->gradient
              << (row->reason.empty() ? "" : ": " + row->reason) << " | " << row->second_order
              << " |\n";
  }
}

void PrintMarkdown(const std::vector<OperatorRow>& rows) {
  std::map<std::string, std::vector<const OperatorRow*>> domains;
  for (const OperatorRow& row : rows) domains[row.domain].push_back(&row);
  PrintMarkdownHead();
  for (const auto& [domain, of_domain] : domains) PrintMarkdownDomain(domain, of_domain);
}

absl::StatusOr<int> RunOps(const Args& args, const Environment& environment) {
  const std::vector<OperatorRow> rows = OperatorTable(environment);
  args.Has("json") ? PrintJson(rows) : args.Has("markdown") ? PrintMarkdown(rows) : PrintText(rows);
  return 0;
}

}  // namespace

Command OpsCommand() {
  return InEnvironment(
      {.name = "ops",
       .summary = "table of operators: kernels, element types, gradient, second order, or why not",
       .arguments = {},
       .flags = {Flag::Switch("json", "print one JSON object per operator"),
                 Flag::Switch("markdown", "print the page docs/operators.md")},
       .example = "onward ops"},
      RunOps);
}

}  // namespace onward
