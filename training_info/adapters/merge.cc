// SPDX-License-Identifier: Apache-2.0
#include "training_info/adapters/merge.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/name_scope.h"
#include "core/graph/verify.h"
#include "training_info/adapters/delta.h"
#include "training_info/adapters/match.h"

namespace onward {
namespace {

// How often each value is read, in bodies too; being an output counts.
using ReadCounts = absl::flat_hash_map<std::string, int>;
void CountReads(const Graph& graph, ReadCounts* reads) {
  for (const NamedType& out : graph.outputs) ++(*reads)[out.name];
  for (const Node& node : graph.nodes) {
    for (const std::string& in : node.inputs) ++(*reads)[in];
    ForEachBody(node, [&](const std::string&, const Graph& body) { CountReads(body, reads); });
  }
}

class Merger {
 public:
  Merger(MergeMode mode, const Environment& environment, Graph* graph)
      : mode_(mode),
        environment_(environment),
        root_(graph),
        adapters_(FindAdapters(*graph)),
        names_(*graph) {}

  absl::StatusOr<Merged> Run() {
    if (adapters_.empty()) return Merged{};
    CountReads(*root_, &reads_);
    ONWARD_RETURN_IF_ERROR(CountUses(*root_, nullptr));
    ONWARD_RETURN_IF_ERROR(PlanAll(*root_, nullptr));
    ONWARD_RETURN_IF_ERROR(Rewrite(root_, nullptr));
    for (auto& [name, tensor] : fresh_) {
      root_->types[name] = ValueType::Of(tensor.dtype(), tensor.shape());
      root_->initializers.insert_or_assign(name, std::move(tensor));
      std::erase_if(root_->inputs, [&](const NamedType& in) { return in.name == name; });
      merged_.changed.insert(name);
    }
    std::vector<std::string> outputs;
    for (const NamedType& out : root_->outputs) outputs.push_back(out.name);
    Prune(root_, outputs);
    for (const Adapter& adapter : adapters_) {
      const Plan& plan = plans_[&adapter];
      (plan.gone ? merged_.merged : merged_.kept).push_back(adapter.ToString());
    }
    return std::move(merged_);
  }

 private:
  // What becomes of an adapter.
  struct Plan {
    int uses = 0;
    std::optional<Site::Key> key;  // of the first use
    bool gone = false;
    std::string operand;  // what the base reads instead; "" as before
    bool unpacked = false;
  };

  using Visit = absl::Status (Merger::*)(const Graph& graph, const Sight* outer);
  absl::Status InBodies(const Graph& graph, const Sight& sight, Visit visit) {
    absl::Status status;
    for (const Node& node : graph.nodes) {
      ForEachBody(node, [&](const std::string&, const Graph& body) {
        if (status.ok()) status = (this->*visit)(body, &sight);
      });
    }
    return status;
  }

  absl::Status CountUses(const Graph& graph, const Sight* outer) {
    const Sight sight(graph, outer);
    ONWARD_ASSIGN_OR_RETURN(const std::vector<AdapterUse> uses,
                            AdapterMatcher(adapters_, graph, sight).Match());
    for (const AdapterUse& use : uses) {
      Plan& plan = plans_[use.adapter];
      if (plan.uses++ == 0) plan.key = use.site.key;
      if (*plan.key != use.site.key) {
        return absl::InvalidArgumentError(absl::StrCat(
            "the adapter of '", use.adapter->ToString(), "' stands beside '", plan.key->operand,
            "' and, at ", use.base->Describe(), ", beside another weight"));
      }
    }
    return InBodies(graph, sight, &Merger::CountUses);
  }

  absl::Status PlanAll(const Graph& graph, const Sight* outer) {
    const Sight sight(graph, outer);
    ONWARD_ASSIGN_OR_RETURN(const std::vector<AdapterUse> uses,
                            AdapterMatcher(adapters_, graph, sight).Match());
    for (const AdapterUse& use : uses) {
      Plan& plan = plans_[use.adapter];
      const bool stays = use.site.quantized && mode_ == MergeMode::kFloat;
      if (plan.gone || stays) continue;
      plan.gone = true;
      if (mode_ == MergeMode::kDrop) continue;
      const absl::Status status = MakeWeight(use, sight, &plan);
      if (!status.ok()) {
        return Annotate(status, absl::StrCat("the adapter of '", use.adapter->ToString(), "'"));
      }
    }
    return InBodies(graph, sight, &Merger::PlanAll);
  }

  // Whether nothing but the adapter's products reads the values from the source to the operand.
  bool ReadAlone(const Site& site, const Plan& plan) const {
    if (!root_->initializers.contains(site.key.source)) return false;
    std::string value = site.key.source;
    for (const Node* node : site.chain) {
      if (reads_.at(value) != 1) return false;
      value = node->outputs[0];
    }
    return reads_.at(value) == plan.uses;
  }

  absl::Status MakeWeight(const AdapterUse& use, const Sight& sight, Plan* plan) {
    const Site& site = use.site;
    ONWARD_ASSIGN_OR_RETURN(const std::vector<double> delta,
                            DeltaOf(site, root_->initializers.at(use.adapter->a),
                                    root_->initializers.at(use.adapter->b), use.scale));
    if (!site.quantized && ReadAlone(site, *plan)) {
      if (const auto change = DeltaOfSource(site, sight, delta)) {
        ONWARD_ASSIGN_OR_RETURN(fresh_[site.key.source],
                                Sum(root_->initializers.at(site.key.source), *change));
        return absl::OkStatus();
      }
    }
    const std::string& operand = site.key.operand;
    plan->unpacked = site.key.form == Site::Form::kPacked;
    Tensor weight;
    if (plan->unpacked) {
      ONWARD_ASSIGN_OR_RETURN(weight, Unpack(*use.base, site, sight, environment_));
    } else if (const std::optional<Tensor> stored = sight.Stored(operand)) {
      weight = *stored;
    } else {
      ONWARD_ASSIGN_OR_RETURN(weight, Evaluate(sight.ConstantGraph(operand), environment_));
    }
    // The weight takes the name of what the product read, where nobody else reads that. Names in
    // bodies may stand twice.
    const bool replaces = !plan->unpacked && reads_.at(operand) == plan->uses &&
                          std::any_of(root_->nodes.begin(), root_->nodes.end(), [&](const Node& n) {
                            return n.HasOutput(0) && n.outputs[0] == operand;
                          });
    plan->operand = replaces ? operand : names_.Unique(operand + "__merged");
    if (replaces) replaced_.insert(operand);
    ONWARD_ASSIGN_OR_RETURN(fresh_[plan->operand], Sum(weight, delta));
    return absl::OkStatus();
  }

  absl::Status Rewrite(Graph* graph, const Sight* outer) {
    const Graph before = *graph;
    const Sight sight(before, outer);
    ONWARD_ASSIGN_OR_RETURN(const std::vector<AdapterUse> uses,
                            AdapterMatcher(adapters_, before, sight).Match());
    absl::flat_hash_set<const Node*> dropped;
    absl::flat_hash_map<const Node*, const AdapterUse*> bases;
    for (const AdapterUse& use : uses) {
      if (!plans_[use.adapter].gone) continue;
      dropped.insert({use.dropout, use.down, use.mul, use.up, use.add});
      bases[use.base] = &use;
    }
    graph->nodes.clear();
    for (const Node& node : before.nodes) {
      const bool replaced = node.HasOutput(0) && replaced_.contains(node.outputs[0]);
      if (replaced || dropped.contains(&node)) continue;
      if (auto base = bases.find(&node); base != bases.end()) {
        WriteBase(*base->second, graph);
        continue;
      }
      Node copy = node;
      ONWARD_RETURN_IF_ERROR(ChangeBodies(
          [&](const Graph& body) -> absl::StatusOr<Graph> {
            Graph changed = body;
            ONWARD_RETURN_IF_ERROR(Rewrite(&changed, &sight));
            return changed;
          },
          &copy));
      graph->nodes.push_back(std::move(copy));
    }
    return absl::OkStatus();
  }

  // The product again as it was, or of another weight.
  void WriteBase(const AdapterUse& use, Graph* graph) {
    const Plan& plan = plans_[use.adapter];
    const std::string y = use.add->outputs[0];
    Node base = *use.base;
    if (!plan.unpacked) {
      if (!plan.operand.empty()) base.inputs[use.site.input] = plan.operand;
      base.outputs[0] = y;
      graph->nodes.push_back(std::move(base));
      return;
    }
    constexpr int kBias = 5;
    Node product;
    product.op_type = "MatMul";
    product.name = base.name;
    product.inputs = {base.inputs[0], plan.operand};
    product.outputs = {base.HasInput(kBias) ? base.outputs[0] : y};
    graph->nodes.push_back(std::move(product));
    if (!base.HasInput(kBias)) return;
    Node add;
    add.op_type = "Add";
    add.inputs = {base.outputs[0], base.inputs[kBias]};
    add.outputs = {y};
    graph->nodes.push_back(std::move(add));
  }

  const MergeMode mode_;
  const Environment& environment_;
  Graph* const root_;
  const std::vector<Adapter> adapters_;
  NameScope names_;
  ReadCounts reads_;
  std::map<const Adapter*, Plan> plans_;
  std::map<std::string, Tensor> fresh_;
  absl::flat_hash_set<std::string> replaced_;
  Merged merged_;
};

}  // namespace

absl::StatusOr<Merged> MergeAdapters(MergeMode mode, const Environment& environment, Graph* graph) {
  return Merger(mode, environment, graph).Run();
}

}  // namespace onward
