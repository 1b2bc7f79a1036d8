// SPDX-License-Identifier: Apache-2.0
#include "training_info/body_gradients.h"

#include <algorithm>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/infer.h"
#include "core/graph/inline.h"
#include "core/graph/name_scope.h"
#include "core/graph/rename.h"

namespace onward {
namespace {

using NameSet = absl::flat_hash_set<std::string>;

bool BodiesHoldGradient(const Node& node) {
  bool holds = false;
  ForEachBody(node, [&](const std::string&, const Graph& body) {
    ForEachGradient(body.nodes, [&](const Node&) { holds = true; });
  });
  return holds;
}

NameSet DefinedBy(const Graph& graph) {
  NameSet names;
  for (const NamedType& in : graph.inputs) names.insert(in.name);
  for (const auto& [name, tensor] : graph.initializers) names.insert(name);
  for (const Node& node : graph.nodes) names.insert(node.outputs.begin(), node.outputs.end());
  return names;
}

void RenameGradients(const Renaming& renaming, std::vector<Node>* nodes) {
  for (Node& node : *nodes) {
    RenameNamed(renaming, &node);
    ChangeBodies(
        [&](const Graph& body) {
          Graph renamed = body;
          RenameGradients(renaming, &renamed.nodes);
          return renamed;
        },
        &node)
        .IgnoreError();
  }
}

// One body at one place of the graph around it.
class BodyExpansion {
 public:
  BodyExpansion(const Graph& around, size_t position, const Graph& body)
      : around_(around), position_(position), body_(body), defined_(DefinedBy(body)) {
    for (std::string& value : CapturedValues(body)) read_.insert(std::move(value));
    ForEachGradient(body.nodes, [&](const Node& gradient) {
      for (const std::string& x : gradient.Strings("xs")) {
        if (!defined_.contains(x)) xs_.insert(x);
        Read(x);
      }
      for (const std::string& z : gradient.Strings("zs")) Read(z);
      Read(gradient.String("y", ""));
    });
  }

  // The body as a graph of its own: what it reads from outside are inputs.
  absl::StatusOr<Graph> Close(NameScope* names) const {
    Graph closed = body_;
    closed.opsets = around_.opsets;
    closed.types.clear();
    Function between;
    between.body.nodes = Between();
    NameSet made;
    for (const Node& node : between.body.nodes)
      made.insert(node.outputs.begin(), node.outputs.end());
    Node call;
    Renaming renaming;
    for (const std::string& value : read_) {
      if (!made.contains(value)) continue;
      between.body.outputs.push_back({value, {}});
      call.outputs.push_back(names->Unique(absl::StrCat("inside__", value)));
      renaming.emplace(value, call.outputs.back());
    }
    ONWARD_ASSIGN_OR_RETURN(closed.nodes, ExpandCall(between, call, "inside__", names));
    std::vector<Node> own = body_.nodes;
    for (Node& node : own) RenameReads(renaming, &node);
    RenameGradients(renaming, &own);
    closed.nodes.insert(closed.nodes.end(), own.begin(), own.end());
    for (NamedType& out : closed.outputs) out.name = Renamed(renaming, out.name);
    std::set<std::string> outside = read_;
    for (std::string& value : CapturedValues(closed)) outside.insert(std::move(value));
    const NameSet inside = DefinedBy(closed);
    for (const std::string& value : outside) {
      if (inside.contains(value) || renaming.contains(value)) continue;
      const ValueType* type = around_.TypeOf(value);
      closed.inputs.push_back({value, type == nullptr ? ValueType{} : *type});
    }
    return closed;
  }

 private:
  void Read(const std::string& name) {
    if (!name.empty() && !defined_.contains(name)) read_.insert(name);
  }

  // The nodes outside that lead from an x to what the body reads, in their order.
  std::vector<Node> Between() const {
    NameSet affected = xs_, needed(read_.begin(), read_.end());
    std::vector<const Node*> candidates;
    for (size_t i = 0; i < position_; ++i) {
      const Node& node = around_.nodes[i];
      const bool gives_x =
          absl::c_any_of(node.outputs, [&](const std::string& o) { return xs_.contains(o); });
      if (gives_x || absl::c_none_of(AllInputs(node),
                                     [&](const std::string& in) { return affected.contains(in); }))
        continue;
      affected.insert(node.outputs.begin(), node.outputs.end());
      affected.erase("");
      candidates.push_back(&node);
    }
    std::vector<Node> kept;
    for (auto it = candidates.rbegin(); it != candidates.rend(); ++it) {
      if (absl::c_none_of((*it)->outputs, [&](const std::string& o) { return needed.contains(o); }))
        continue;
      for (std::string& in : AllInputs(**it)) needed.insert(std::move(in));
      kept.push_back(**it);
    }
    std::reverse(kept.begin(), kept.end());
    return kept;
  }

  const Graph& around_;
  const size_t position_;
  const Graph& body_;
  const NameSet defined_;
  NameSet xs_;                  // of values outside
  std::set<std::string> read_;  // values outside, in an order that stays
};

}  // namespace

bool IsGradient(const Node& node) { return node.Is("Gradient", kTrainingDomain); }

void ForEachGradient(const std::vector<Node>& nodes, absl::FunctionRef<void(const Node&)> visit) {
  for (const Node& node : nodes) {
    if (IsGradient(node)) visit(node);
    ForEachBody(node,
                [&](const std::string&, const Graph& body) { ForEachGradient(body.nodes, visit); });
  }
}

absl::Status ExpandBodyGradients(const OperatorSet& operators, const NameSet& taken,
                                 const ExpandClosed& expand, Graph* graph) {
  if (absl::c_none_of(graph->nodes, BodiesHoldGradient)) return absl::OkStatus();
  InferTypes(graph, operators).IgnoreError();  // what is not known is asked for later
  for (size_t i = 0; i < graph->nodes.size(); ++i) {
    if (!BodiesHoldGradient(graph->nodes[i])) continue;
    Node node = graph->nodes[i];
    const auto change = [&](const Graph& body) -> absl::StatusOr<Graph> {
      NameScope names(*graph);
      names.ReserveAll(taken);
      const BodyExpansion expansion(*graph, i, body);
      ONWARD_ASSIGN_OR_RETURN(Graph closed, expansion.Close(&names));
      NameSet outer(taken);
      for (const Node& n : graph->nodes) outer.insert(n.outputs.begin(), n.outputs.end());
      for (const auto& [name, tensor] : graph->initializers) outer.insert(name);
      ONWARD_ASSIGN_OR_RETURN(Graph expanded, expand(closed, outer));
      Graph result = body;
      result.types.clear();
      result.nodes = std::move(expanded.nodes);
      result.initializers = std::move(expanded.initializers);
      result.outputs = std::move(expanded.outputs);
      return result;
    };
    ONWARD_RETURN_IF_ERROR(ChangeBodies(change, &node));
    graph->nodes[i] = std::move(node);
  }
  return absl::OkStatus();
}

}  // namespace onward
