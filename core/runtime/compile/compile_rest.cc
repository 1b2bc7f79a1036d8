// SPDX-License-Identifier: Apache-2.0
// What one plan cannot do: nodes behind values whose shapes only data can tell go to another one.
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/verify.h"
#include "core/runtime/compile/compile.h"
#include "core/runtime/compile/compiler.h"

namespace onward {
namespace {

// Each plan looks at all that is left, so that a long chain of plans costs the square.
constexpr int64_t kMostLooks = 1'000'000;

}  // namespace

bool Compiler::LooksAtLateValues() const {
  if (options_.accelerators.empty()) return false;
  absl::flat_hash_set<int> late;
  for (const PlanStep& step : plan_.compute) {
    if (step.late) late.insert(step.outputs.begin(), step.outputs.end());
  }
  late.erase(-1);
  const auto is_late = [&](const std::string& name) { return late.contains(builder_.Find(name)); };
  return absl::c_any_of(options_.finite, is_late) ||
         absl::c_any_of(updates_, [&](const auto& update) { return is_late(update.second); }) ||
         absl::c_any_of(conditions_,
                        [&](const auto& entry) { return is_late(entry.second.value); });
}

absl::Status Compiler::AddRest(const std::vector<std::string>& wanted,
                               const std::vector<std::string>& needed) {
  auto rest = std::make_shared<Continuation>();
  rest->options = options_;
  rest->options.feeds.clear();
  rest->options.element_types = nullptr;
  rest->options.twins.clear();
  rest->options.outputs = wanted;
  rest->options.updates = updates_;
  rest->options.conditions = conditions_;
  rest->options.nodes_before += static_cast<int64_t>(rest_.size());
  if (rest->options.nodes_before > kMostLooks) {
    return absl::ResourceExhaustedError(
        "too many values in a row have shapes that only data can tell");
  }
  Graph graph;
  graph.name = graph_.name;
  graph.opsets = graph_.opsets;
  graph.nodes = std::move(rest_);
  ONWARD_RETURN_IF_ERROR(SortNodes(&graph));
  absl::flat_hash_set<std::string> listed = {""};
  const auto hand_over = [&](const std::string& name) -> absl::Status {
    if (of_rest_.contains(name) || !listed.insert(name).second) return absl::OkStatus();
    const int id = builder_.Find(name);
    if (id < 0) {
      return absl::InvalidArgumentError(absl::StrCat("value '", name, "' is not produced"));
    }
    if (const Tensor* constant = ConstantAt(name)) {
      graph.initializers.emplace(name, *constant);
    } else if (options_.variables.contains(name)) {
      graph.initializers.emplace(name, graph_.initializers.at(name));
    } else {
      graph.inputs.push_back({name, {}});
      plan_.outputs.emplace_back(name, builder_.Plain(id));
    }
    // What was copied once is not copied again.
    const std::vector<int> twins = builder_.TwinsOf(builder_.Plain(id));
    for (const int twin : twins) {
      if (plan_.values[twin].storage == PlanValue::Storage::kConstant) continue;
      const std::string input =
          absl::StrCat(name, " on ", plan_.DeviceOf(plan_.values[twin].device).name());
      if (builder_.Find(input) >= 0 || of_rest_.contains(input)) continue;
      graph.inputs.push_back({input, {}});
      plan_.outputs.emplace_back(input, twin);
      rest->options.twins[input] = name;
    }
    return absl::OkStatus();
  };
  for (const Node& node : graph.nodes) {
    for (const std::string& name : AllInputs(node)) ONWARD_RETURN_IF_ERROR(hand_over(name));
  }
  for (const std::string& name : needed) ONWARD_RETURN_IF_ERROR(hand_over(name));
  for (const auto& [variable, value] : updates_) {
    ONWARD_RETURN_IF_ERROR(hand_over(variable));
  }
  rest->graph = std::make_shared<const Graph>(std::move(graph));
  plan_.rest = std::move(rest);
  return absl::OkStatus();
}

}  // namespace onward
