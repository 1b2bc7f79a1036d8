// SPDX-License-Identifier: Apache-2.0
#include "environment/operator_table.h"

#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "autograd/rule.h"
#include "core/onnx_io/standard_operators.h"

namespace onward {
namespace {

constexpr char kNoReason[] = "no rule yet";

// What is known of an operator while its row is made.
struct Known {
  OperatorRow row;
  bool has_body = false;
  bool floating_results = true;
  bool on_values = false;  // sequences, optionals, maps
};
using KnownByName = std::map<std::pair<std::string, std::string>, Known>;

void AddOnce(std::string word, std::vector<std::string>* words) {
  if (!absl::c_linear_search(*words, word)) words->push_back(std::move(word));
}

void AddStandard(KnownByName* known) {
  for (const StandardOperator& op : StandardOperators()) {
    Known& k = (*known)[{op.domain, op.name}];
    k.row.since = op.since;
    k.row.differentiable = op.differentiable;
    k.has_body = op.has_body;
    k.floating_results = op.floating_results;
  }
}

void AddKernels(const KernelTable& kernels, KnownByName* known) {
  for (const auto& [key, entries] : kernels.all()) {
    Known& k = (*known)[key];
    for (const KernelTable::Entry& entry : entries) {
      k.on_values |= entry.on_values;
      AddOnce(entry.provider, &k.row.providers);
      for (const auto type : absl::StrSplit(entry.types, ", ", absl::SkipEmpty())) {
        AddOnce(std::string(type), &k.row.types);
      }
    }
  }
  // Expanded, and differentiated as what it stands for.
  (*known)[{std::string(kTrainingDomain), "Gradient"}].has_body = true;
  // Whatever their bodies hold.
  for (const char* op : {"If", "Loop", "Scan"}) {
    Known& k = (*known)[{"", op}];
    k.on_values = true;
    k.row.providers = {"runtime"};
    k.row.types = {"all"};
  }
}

void AddFunctions(const FunctionLibrary& functions, KnownByName* known) {
  for (const auto& [key, def] : functions.all()) {
    const bool body = def.body || def.function != nullptr;
    if (!body) continue;
    (*known)[{key.domain, key.name}].has_body = true;
  }
}

void Judge(const RuleTable& rules, Known* known) {
  OperatorRow& row = known->row;
  if (row.providers.empty() && known->has_body) row.providers = {"body"};
  const RuleTable::Entry* entry = rules.Find(row.name, row.domain);
  const std::string* reason = rules.WhyNone(row.name, row.domain);
  if (entry != nullptr) {
    // Gradients are graphs of operators with rules of their own.
    row.gradient = entry->rule ? "rule" : "zero";
    row.second_order = entry->rule ? "yes" : "zero";
  } else if (reason != nullptr) {
    row.gradient = row.second_order = "none";
    row.reason = *reason;
  } else if (known->has_body) {
    row.gradient = row.second_order = "body";
  } else if (!known->floating_results) {
    row.gradient = row.second_order = "zero";
  } else {
    row.gradient = row.second_order = "none";
    row.reason = known->on_values ? "no rule for bodies, sequences and optionals yet" : kNoReason;
  }
}

}  // namespace

std::string OperatorRow::FullName() const {
  return domain.empty() ? name : absl::StrCat(domain, ".", name);
}

std::vector<OperatorRow> OperatorTable(const Environment& environment) {
  KnownByName known;
  AddStandard(&known);
  AddKernels(environment.cpu().kernels(), &known);
  AddFunctions(environment.functions(), &known);
  for (const auto& [key, entry] : environment.rules().all()) known[key];
  std::vector<OperatorRow> rows;
  for (auto& [key, k] : known) {
    std::tie(k.row.domain, k.row.name) = key;
    Judge(environment.rules(), &k);
    rows.push_back(std::move(k.row));
  }
  return rows;
}

}  // namespace onward
