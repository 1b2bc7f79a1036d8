// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/rewrite/conditional_updates.h"

#include <algorithm>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/inline.h"
#include "core/graph/name_scope.h"
#include "core/graph/random.h"

namespace onward {
namespace {

constexpr const char* kBranches[] = {"else_branch", "then_branch"};  // by condition

// Random numbers go by the names of values, which are others in the graph around a branch.
bool Draws(const Graph& branch) {
  return absl::c_any_of(branch.nodes, [](const Node& node) {
    bool draws = IsRandom(node);
    ForEachBody(node, [&](const std::string&, const Graph& body) { draws |= Draws(body); });
    return draws;
  });
}

class Opener {
 public:
  Opener(const absl::flat_hash_set<std::string>& read, Graph* graph,
         std::vector<std::pair<std::string, std::string>>* updates, UpdateConditions* conditions)
      : graph_(*graph), updates_(*updates), conditions_(*conditions), read_(read) {
    for (const Node& node : graph_.nodes) {
      for (std::string& value : AllInputs(node)) read_.insert(std::move(value));
    }
    for (const auto& [variable, value] : updates_) {
      const bool first = variable_of_.try_emplace(value, variable).second;
      if (!first || conditions_.contains(value)) read_.insert(value);
    }
  }

  absl::Status Run() {
    const auto opens = [this](const Node& node) { return Opens(node); };
    if (absl::c_none_of(graph_.nodes, opens)) return absl::OkStatus();
    NameScope names(graph_);
    std::vector<Node> nodes;
    for (Node& node : graph_.nodes) {
      if (!Opens(node)) {
        nodes.push_back(std::move(node));
        continue;
      }
      for (const bool when : {true, false}) {
        ONWARD_RETURN_IF_ERROR(AddBranch(node, when, &names, &nodes));
      }
      std::erase_if(updates_, [&](const auto& update) {
        return absl::c_linear_search(node.outputs, update.second);
      });
      updates_.insert(updates_.end(), opened_.begin(), opened_.end());
      opened_.clear();
    }
    graph_.nodes = std::move(nodes);
    return absl::OkStatus();
  }

 private:
  bool Opens(const Node& node) const {
    if (!node.Is("If") || node.inputs.size() != 1 || !node.HasInput(0) || node.outputs.empty()) {
      return false;
    }
    const bool assigned = absl::c_all_of(node.outputs, [&](const std::string& out) {
      return variable_of_.contains(out) && !read_.contains(out);
    });
    return assigned && absl::c_all_of(kBranches, [&](const char* name) {
             const Graph* branch = node.Subgraph(name);
             return branch != nullptr && branch->outputs.size() == node.outputs.size() &&
                    !Draws(*branch);
           });
  }

  // Whether a branch hands on the variable itself.
  static bool Keeps(const Graph& branch, std::string value, const std::string& variable) {
    for (auto node = branch.nodes.rbegin(); node != branch.nodes.rend(); ++node) {
      if (!absl::c_linear_search(node->outputs, value)) continue;
      if (!node->Is("Identity") || !node->HasInput(0)) return false;
      value = node->inputs[0];
    }
    return value == variable && !branch.initializers.contains(value);
  }

  absl::Status AddBranch(const Node& node, bool when, NameScope* names, std::vector<Node>* nodes) {
    const Graph& branch = *node.Subgraph(kBranches[when ? 1 : 0]);
    const char* suffix = when ? "__then" : "__else";
    Node call = node;
    for (size_t k = 0; k < call.outputs.size(); ++k) {
      std::string& out = call.outputs[k];
      const std::string& variable = variable_of_.at(out);
      if (Keeps(branch, branch.outputs[k].name, variable)) {
        out.clear();
        continue;
      }
      out = names->Unique(absl::StrCat(out, suffix));
      opened_.emplace_back(variable, out);
      conditions_[out] = {node.inputs[0], when};
    }
    ONWARD_ASSIGN_OR_RETURN(
        std::vector<Node> expanded,
        ExpandBranch(call, when, absl::StrCat(node.outputs[0], suffix, "_"), names));
    std::move(expanded.begin(), expanded.end(), std::back_inserter(*nodes));
    return absl::OkStatus();
  }

  Graph& graph_;
  std::vector<std::pair<std::string, std::string>>& updates_;
  std::vector<std::pair<std::string, std::string>> opened_;
  UpdateConditions& conditions_;
  absl::flat_hash_set<std::string> read_;
  absl::flat_hash_map<std::string, std::string> variable_of_;  // by the value it gets
};

// When a value is needed: whenever the plan runs, or only then.
class Need {
 public:
  void Add(const PlanGuard& guard) {
    if (!known_) guard_ = guard;
    if (known_ && !(guard_ == guard)) guard_ = {};
    known_ = true;
  }
  void Add(const Need& other) {
    if (other.known_) Add(other.guard_);
  }
  // What nobody needs is computed as ever.
  PlanGuard guard() const { return known_ ? guard_ : PlanGuard{}; }

 private:
  bool known_ = false;
  PlanGuard guard_;
};

}  // namespace

absl::Status OpenConditionalUpdates(const absl::flat_hash_set<std::string>& read, Graph* graph,
                                    std::vector<std::pair<std::string, std::string>>* updates,
                                    UpdateConditions* conditions) {
  const auto is_if = [](const Node& node) { return node.Is("If"); };
  if (updates->empty() || absl::c_none_of(graph->nodes, is_if)) return absl::OkStatus();
  return Opener(read, graph, updates, conditions).Run();
}

void GuardComputation(Plan* plan) {
  std::vector<Need> needs(plan->values.size());  // by root
  const auto need = [&](int id, const PlanGuard& guard) {
    if (id >= 0) needs[plan->values[id].root].Add(guard);
  };
  bool any = false;
  for (const PlanStep& step : plan->commit) {
    for (int id : step.inputs) need(id, step.guard);
    need(step.guard.value, {});
    any |= !step.guard.always();
  }
  for (const PlanCopy& copy : plan->copies) {
    need(copy.from, copy.guard);
    need(copy.guard.value, {});
    any |= !copy.guard.always();
  }
  if (!any) return;
  for (const auto& [name, id] : plan->outputs) need(id, {});
  for (int id : plan->finite) need(id, {});
  for (auto step = plan->compute.rbegin(); step != plan->compute.rend(); ++step) {
    Need whole;
    for (int id : step->outputs) {
      if (id >= 0) whole.Add(needs[plan->values[id].root]);
    }
    // What is fed is on its way before a run begins.
    if (!plan->CopiesFeed(*step)) step->guard = whole.guard();
    for (int id : step->inputs) need(id, step->guard);
  }
  std::stable_partition(plan->compute.begin(), plan->compute.end(),
                        [](const PlanStep& step) { return step.guard.always(); });
}

}  // namespace onward
