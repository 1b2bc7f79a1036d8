// SPDX-License-Identifier: Apache-2.0
#include "autograd/tape.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/prepare.h"
#include "autograd/tidy.h"
#include "core/base/small_float.h"
#include "core/base/status.h"
#include "core/graph/infer_bodies.h"
#include "core/graph/inline.h"

namespace onward {
namespace {

constexpr int kMaxBodyDepth = 50;  // of function bodies within function bodies

// `value` and its successors, shortened in the middle.
std::vector<std::string> Chain(const std::string& value,
                               const absl::flat_hash_map<std::string, std::string>& next) {
  constexpr size_t kShown = 5;
  std::vector<std::string> chain = {value};
  for (auto it = next.find(value); it != next.end(); it = next.find(it->second)) {
    chain.push_back(it->second);
  }
  if (chain.size() <= kShown) return chain;
  return {chain[0], chain[1], "...", chain[chain.size() - 2], chain[chain.size() - 1]};
}

// The node's own inputs, omitted ones included, then what its bodies capture.
std::vector<std::string> WithCaptured(const Node& node) {
  std::vector<std::string> inputs = node.inputs;
  for (std::string& v : CapturedByBodies(node)) inputs.push_back(std::move(v));
  return inputs;
}

}  // namespace

absl::Status Tape::Record() {
  needed_.insert(ys_.begin(), ys_.end());
  ExtendNeeded(graph_.nodes, &needed_);
  active_.insert(xs_.begin(), xs_.end());
  const size_t forward_nodes = graph_.nodes.size();
  for (size_t i = 0; i < forward_nodes; ++i) {
    // Expanding a body appends to graph_.nodes, so the node is copied.
    const Node node = graph_.nodes[i];
    ONWARD_RETURN_IF_ERROR(RecordNode(node, i, needed_, node, 0));
  }
  return absl::OkStatus();
}

bool Tape::Carries(const std::string& value) const {
  if (value.empty()) return false;
  if (quantized_.contains(value)) return true;
  const ValueType* type = graph_.TypeOf(value);
  return type == nullptr || type->leaf() == DType::kUndefined || IsFloating(type->leaf()) ||
         IsSmallFloat(type->leaf());
}

// Of a node that depends on an x: its result, if it is quantized here, or was before and has
// only been moved or cast to a type that holds it.
void Tape::MarkQuantized(const Node& node) {
  static const auto* const movers = new absl::flat_hash_set<std::string>{
      "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Cast", "CastLike"};
  if (node.Is("QuantizeLinear")) quantized_.insert(node.outputs[0]);
  if (!node.domain.empty() || !movers->contains(node.op_type)) return;
  if (!node.HasInput(0) || !quantized_.contains(node.inputs[0])) return;
  const ValueType *from = graph_.TypeOf(node.inputs[0]), *to = graph_.TypeOf(node.outputs[0]);
  if (from == nullptr || to == nullptr) return;
  const bool holds = from->leaf() == to->leaf() || DTypeBits(to->leaf()) > DTypeBits(from->leaf());
  if (holds) quantized_.insert(node.outputs[0]);
}

// Adds to `needed` the values that its members are computed from; an x ends the
// search.
void Tape::ExtendNeeded(const std::vector<Node>& nodes, ValueSet* needed) {
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    auto out = std::find_if(node->outputs.begin(), node->outputs.end(), [&](const std::string& v) {
      return needed->contains(v) && !xs_.contains(v) && !stop_.contains(v);
    });
    if (out == node->outputs.end()) continue;
    for (std::string& in : AllInputs(*node)) {
      toward_y_.try_emplace(in, *out);
      needed->insert(std::move(in));
    }
  }
}

// Puts a node on the tape, or the nodes of its body. `outer` is the node of the
// forward graph that it belongs to.
absl::Status Tape::RecordNode(const Node& node, size_t index, const ValueSet& needed,
                              const Node& outer, int depth) {
  const std::vector<std::string> inputs = AllInputs(node);
  auto source =
      std::find_if(inputs.begin(), inputs.end(), [&](const std::string& v) { return IsActive(v); });
  if (source == inputs.end()) return absl::OkStatus();
  MarkQuantized(node);
  bool wanted = false, matters = false;
  for (const std::string& out : node.outputs) {
    if (!needed.contains(out) || xs_.contains(out) || stop_.contains(out)) continue;
    wanted = true;
    matters |= Carries(out);
  }
  if (!wanted) return absl::OkStatus();
  const RuleTable::Entry* entry = rules_.Find(node.op_type, node.domain);
  if (!matters || (entry != nullptr && entry->rule == nullptr)) {
    flats_.push_back({index, steps_.size()});
    return absl::OkStatus();
  }
  if (entry == nullptr) {
    ONWARD_ASSIGN_OR_RETURN(std::optional<Function> body, Body(node));
    if (body.has_value()) return RecordBody(node, *body, needed, outer, depth);
  }
  steps_.push_back(
      {node, index, entry == nullptr ? nullptr : &entry->rule, depth > 0 ? outer.Describe() : ""});
  if (RunsBodies(node)) steps_.back().node.inputs = WithCaptured(node);
  for (const std::string& out : node.outputs) {
    if (!Carries(out) || stop_.contains(out)) continue;
    active_.insert(out);
    from_.try_emplace(out, *source);
  }
  return absl::OkStatus();
}

std::vector<InputFact> Tape::Facts(const Node& node) const {
  std::vector<InputFact> facts(node.inputs.size());
  for (size_t i = 0; i < facts.size(); ++i) {
    if (node.inputs[i].empty()) continue;
    facts[i] = b_.FactOf(node.inputs[i]);
  }
  return facts;
}

absl::StatusOr<std::optional<Function>> Tape::Body(const Node& node) const {
  auto it = graph_.functions.find({node.domain, node.op_type, node.overload});
  if (it != graph_.functions.end()) return std::optional<Function>(*it->second);
  return operators_.FunctionBody(node, Facts(node), graph_.opsets);
}

absl::Status Tape::RecordBody(const Node& call, const Function& body, const ValueSet& needed,
                              const Node& outer, int depth) {
  if (depth >= kMaxBodyDepth) {
    return absl::InvalidArgumentError(
        absl::StrCat(outer.Describe(), ": function bodies nested deeper than ", kMaxBodyDepth));
  }
  if (graph_.nodes.size() > static_cast<size_t>(kMaxExpandedNodes)) {
    return absl::ResourceExhaustedError(absl::StrCat("function bodies on the way to '", ys_[0],
                                                     "' expand to more than ", kMaxExpandedNodes,
                                                     " nodes"));
  }
  ONWARD_ASSIGN_OR_RETURN(
      std::vector<Node> nodes,
      ExpandCall(body, call, absl::StrCat(b_.UniqueName(prefix_), "_"), &b_.names()));
  ShareConstants(call, &nodes);
  ValueSet inner_needed;
  for (const std::string& out : call.outputs) {
    if (needed.contains(out)) inner_needed.insert(out);
  }
  ExtendNeeded(nodes, &inner_needed);
  for (const auto& [domain, version] : body.body.opsets) graph_.opsets.try_emplace(domain, version);
  const ValueSet call_outputs(call.outputs.begin(), call.outputs.end());
  for (const Node& node : nodes) {
    Node copy = node;
    for (std::string& out : copy.outputs) {
      if (!out.empty() && call_outputs.contains(out)) out = b_.UniqueName(prefix_);
    }
    b_.Append(std::move(copy));
    if (!b_.status().ok()) {
      return Annotate(b_.status(), absl::StrCat("in the body of ", outer.Describe()));
    }
    for (const std::string& out : graph_.nodes.back().outputs) {
      if (!out.empty()) NameDims(&graph_.types[out], next_dim_);
    }
    ONWARD_RETURN_IF_ERROR(
        RecordNode(node, graph_.nodes.size() - 1, inner_needed, outer, depth + 1));
  }
  return absl::OkStatus();
}

// Hands the constants of a body over to the builder, which then knows their
// values. Those that subgraphs read keep their names.
void Tape::ShareConstants(const Node& call, std::vector<Node>* nodes) {
  ValueSet fixed = CapturedBySubgraphs(*nodes);
  fixed.insert(call.outputs.begin(), call.outputs.end());
  absl::flat_hash_map<std::string, std::string> names;
  std::vector<Node> others;
  for (Node& node : *nodes) {
    for (std::string& in : node.inputs) {
      if (auto it = names.find(in); it != names.end()) in = it->second;
    }
    std::optional<Tensor> value = ConstantValue(node);
    if (value.has_value() && !fixed.contains(node.outputs[0])) {
      names[node.outputs[0]] = b_.Constant(*value).name();
    } else {
      others.push_back(std::move(node));
    }
  }
  *nodes = std::move(others);
}

std::string Tape::OpVersion(const Node& node) const {
  const int since = operators_.SinceVersion(node, graph_.opsets);
  return absl::StrCat(node.domain.empty() ? "" : absl::StrCat(node.domain, "."), node.op_type,
                      since == 0 ? "" : absl::StrCat("-", since));
}

std::string Tape::WhyNone(const Node& node) const {
  const std::string* reason = rules_.WhyNone(node.op_type, node.domain);
  if (reason != nullptr) return *reason;
  const std::vector<InputFact> facts = Facts(node);
  const bool open = absl::c_any_of(facts, [](const InputFact& fact) {
    return fact.type != nullptr && fact.type->is_tensor() && !fact.type->StaticShape();
  });
  if (!open || operators_.SinceVersion(node, graph_.opsets) == 0) return "";
  return "it has no function body for inputs whose shapes are not known; declare them";
}

std::string Tape::Path(const Node& node) const {
  std::vector<std::string> path, after;
  for (const std::string& in : AllInputs(node)) {
    if (!IsActive(in)) continue;
    path = Chain(in, from_);
    break;
  }
  for (const std::string& out : node.outputs) {
    if (!needed_.contains(out)) continue;
    after = Chain(out, toward_y_);
    break;
  }
  std::reverse(path.begin(), path.end());
  path.push_back(absl::StrCat("[", node.name.empty() ? node.op_type : node.name, "]"));
  path.insert(path.end(), after.begin(), after.end());
  return absl::StrJoin(path, " -> ");
}

}  // namespace onward
