// SPDX-License-Identifier: Apache-2.0
// The engine: finds the nodes between the xs and y (the tape), walks them
// backwards, asks each rule for the gradients of its inputs, and does once for
// all rules what follows: types, shapes, sums.
#include "autograd/differentiate.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/prepare.h"
#include "autograd/shape_expr.h"
#include "autograd/tidy.h"
#include "core/base/status.h"
#include "core/graph/builder.h"
#include "core/graph/inline.h"

namespace onward {
namespace {

constexpr int kOldestOpset = 18;   // whose operator forms rules emit
constexpr int kMaxBodyDepth = 50;  // of function bodies within function bodies

using ValueSet = absl::flat_hash_set<std::string>;

// One node of the tape. A node of an expanded body stands in the graph as a
// copy with output names of its own, because the forward call still computes
// the call's outputs; here it has the names that gradients arrive under.
struct Step {
  Node node;
  size_t index;  // of the node, or its copy, in the graph
  const Rule* rule;
};

// A node that cannot be differentiated.
struct Obstacle {
  std::string what;
  std::string path;
};

class Engine {
 public:
  Engine(Graph forward, std::string y, const std::vector<std::string>& xs,
         const DifferentiateOptions& options, const RuleTable& rules, std::string prefix)
      : graph_(std::move(forward)),
        y_(std::move(y)),
        xs_(xs),
        x_set_(xs.begin(), xs.end()),
        options_(options),
        rules_(rules),
        prefix_(std::move(prefix)),
        first_generated_(graph_.nodes.size()),
        b_(&graph_, options.operators, prefix_) {
    for (const std::string& name : options.reserved) b_.Reserve(name);
  }

  absl::StatusOr<Gradients> Run() {
    ONWARD_RETURN_IF_ERROR(CheckArguments());
    FindNeeded();
    ONWARD_RETURN_IF_ERROR(RecordTape());
    ONWARD_RETURN_IF_ERROR(ReportObstacles());
    ONWARD_RETURN_IF_ERROR(Walk());
    return Collect();
  }

 private:
  // --- Arguments ---

  bool Exists(const std::string& value) const {
    if (value.empty()) return false;
    if (graph_.IsInput(value) || graph_.initializers.contains(value)) return true;
    return std::any_of(graph_.nodes.begin(), graph_.nodes.end(), [&](const Node& node) {
      return std::find(node.outputs.begin(), node.outputs.end(), value) != node.outputs.end();
    });
  }

  absl::Status CheckValue(const std::string& role, const std::string& value) const {
    if (!Exists(value)) {
      return absl::InvalidArgumentError(absl::StrCat(
          role, " '", value, "' names no value of graph '", graph_.name, "'"));
    }
    const ValueType* type = graph_.TypeOf(value);
    if (type == nullptr || type->dtype == DType::kUndefined) return absl::OkStatus();
    if (type->kind == ValueType::Kind::kTensor && IsFloating(type->dtype)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        role, " '", value, "' has type ", type->ToString(),
        "; gradients exist for floating-point tensors only"));
  }

  absl::Status CheckArguments() const {
    ONWARD_RETURN_IF_ERROR(CheckValue("y", y_));
    for (const std::string& x : xs_) ONWARD_RETURN_IF_ERROR(CheckValue("x", x));
    if (!options_.seed.empty()) ONWARD_RETURN_IF_ERROR(CheckValue("the seed", options_.seed));
    return absl::OkStatus();
  }

  // --- The tape ---

  // Whether gradients can flow through a value, by its type.
  bool Carries(const std::string& value) const {
    if (value.empty()) return false;
    const ValueType* type = graph_.TypeOf(value);
    return type == nullptr || type->dtype == DType::kUndefined || IsFloating(type->dtype);
  }

  // Adds to `needed` the values that its members are computed from; an x ends
  // the search. toward_y_ keeps one way from each value to y.
  void ExtendNeeded(const std::vector<Node>& nodes, ValueSet* needed) {
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      auto out = std::find_if(node->outputs.begin(), node->outputs.end(), [&](const std::string& v) {
        return needed->contains(v) && !x_set_.contains(v);
      });
      if (out == node->outputs.end()) continue;
      for (std::string& in : AllInputs(*node)) {
        toward_y_.try_emplace(in, *out);
        needed->insert(std::move(in));
      }
    }
  }

  void FindNeeded() {
    needed_.insert(y_);
    ExtendNeeded(graph_.nodes, &needed_);
  }

  absl::Status RecordTape() {
    for (const std::string& x : xs_) active_.insert(x);
    for (size_t i = 0; i < first_generated_; ++i) {
      // Expanding a body appends to graph_.nodes, so the node is copied.
      const Node node = graph_.nodes[i];
      ONWARD_RETURN_IF_ERROR(Record(node, i, needed_, node, 0));
    }
    return absl::OkStatus();
  }

  // Puts a node on the tape, or the nodes of its body. `outer` is the node of
  // the forward graph it belongs to.
  absl::Status Record(const Node& node, size_t index, const ValueSet& needed, const Node& outer,
                      int depth) {
    const std::vector<std::string> inputs = AllInputs(node);
    auto source = std::find_if(inputs.begin(), inputs.end(), [&](const std::string& v) {
      return active_.contains(v) && Carries(v);
    });
    if (source == inputs.end()) return absl::OkStatus();
    const bool matters = std::any_of(node.outputs.begin(), node.outputs.end(), [&](const std::string& v) {
      return needed.contains(v) && !x_set_.contains(v) && Carries(v);
    });
    if (!matters) return absl::OkStatus();
    const RuleTable::Entry* entry = rules_.Find(node.op_type, node.domain);
    if (entry != nullptr && entry->rule == nullptr) return absl::OkStatus();
    if (entry == nullptr) {
      ONWARD_ASSIGN_OR_RETURN(std::optional<Function> body, Body(node));
      if (body.has_value()) return RecordBody(node, *body, needed, outer, depth);
      obstacles_.push_back({DescribeObstacle(node, outer), Path(outer)});
    } else {
      tape_.push_back({node, index, &entry->rule});
    }
    for (const std::string& out : node.outputs) {
      if (!Carries(out)) continue;
      active_.insert(out);
      from_.try_emplace(out, *source);
    }
    return absl::OkStatus();
  }

  std::vector<InputFact> Facts(const Node& node) const {
    std::vector<InputFact> facts(node.inputs.size());
    for (size_t i = 0; i < facts.size(); ++i) {
      if (node.inputs[i].empty()) continue;
      facts[i] = {graph_.TypeOf(node.inputs[i]), b_.ConstantOf(node.inputs[i])};
    }
    return facts;
  }

  absl::StatusOr<std::optional<Function>> Body(const Node& node) const {
    auto it = graph_.functions.find({node.domain, node.op_type, node.overload});
    if (it != graph_.functions.end()) return std::optional<Function>(*it->second);
    return options_.operators->FunctionBody(node, Facts(node), graph_.opsets);
  }

  absl::Status RecordBody(const Node& call, const Function& body, const ValueSet& needed,
                          const Node& outer, int depth) {
    if (depth >= kMaxBodyDepth) {
      return absl::InvalidArgumentError(
          absl::StrCat(outer.Describe(), ": function bodies nested deeper than ", kMaxBodyDepth));
    }
    if (graph_.nodes.size() > static_cast<size_t>(kMaxExpandedNodes)) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "function bodies on the way to '", y_, "' expand to more than ", kMaxExpandedNodes, " nodes"));
    }
    ONWARD_ASSIGN_OR_RETURN(std::vector<Node> nodes, ExpandCall(body, call, BodyPrefix()));
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
      ONWARD_RETURN_IF_ERROR(Record(node, graph_.nodes.size() - 1, inner_needed, outer, depth + 1));
    }
    return absl::OkStatus();
  }

  // A prefix that no value of the graph has.
  std::string BodyPrefix() {
    while (true) {
      std::string prefix = absl::StrCat(b_.UniqueName(prefix_), "_");
      const bool taken = std::any_of(graph_.nodes.begin(), graph_.nodes.end(), [&](const Node& node) {
        return std::any_of(node.outputs.begin(), node.outputs.end(), [&](const std::string& v) {
          return absl::StartsWith(v, prefix);
        });
      });
      if (!taken) return prefix;
    }
  }

  // --- Obstacles ---

  std::string OpVersion(const Node& node) const {
    const int since = options_.operators->SinceVersion(node, graph_.opsets);
    return absl::StrCat(node.domain.empty() ? "" : absl::StrCat(node.domain, "."), node.op_type,
                        since == 0 ? "" : absl::StrCat("-", since));
  }

  std::string DescribeObstacle(const Node& node, const Node& outer) const {
    std::string text = absl::StrCat(OpVersion(node), " at ", node.Describe());
    if (node.op_type != outer.op_type || node.domain != outer.domain) {
      absl::StrAppend(&text, ", in the body of ", outer.Describe());
    }
    return text;
  }

  // "w -> h1 -> [fc2] -> h2 -> ... -> loss"
  std::string Path(const Node& node) const {
    std::vector<std::string> before, after;
    for (const std::string& in : AllInputs(node)) {
      if (!active_.contains(in)) continue;
      before = Chain(in, from_);
      break;
    }
    for (const std::string& out : node.outputs) {
      if (!needed_.contains(out)) continue;
      after = Chain(out, toward_y_);
      break;
    }
    std::reverse(before.begin(), before.end());
    before.push_back(absl::StrCat("[", node.name.empty() ? node.op_type : node.name, "]"));
    before.insert(before.end(), after.begin(), after.end());
    return absl::StrJoin(before, " -> ");
  }

  // `value` and its successors, shortened in the middle.
  static std::vector<std::string> Chain(std::string value,
                                        const absl::flat_hash_map<std::string, std::string>& next) {
    std::vector<std::string> chain = {value};
    for (auto it = next.find(value); it != next.end(); it = next.find(it->second)) {
      chain.push_back(it->second);
    }
    constexpr size_t kShown = 5;
    if (chain.size() <= kShown) return chain;
    return {chain[0], chain[1], "...", chain[chain.size() - 2], chain[chain.size() - 1]};
  }

  absl::Status ReportObstacles() const {
    if (obstacles_.empty()) return absl::OkStatus();
    std::string message = absl::StrCat(
        "cannot differentiate '", y_, "': ", obstacles_.size(),
        obstacles_.size() == 1 ? " node has" : " nodes have",
        " neither a gradient rule nor a function body:");
    for (const Obstacle& o : obstacles_) absl::StrAppend(&message, "\n  ", o.what, "\n    on the path ", o.path);
    absl::StrAppend(&message,
                    "\nFreeze the variables before these nodes (leave them out of xs), or register a "
                    "rule with RuleTable::Add.");
    return absl::UnimplementedError(message);
  }

  // --- The walk ---

  Expr Seed() {
    Expr y = b_.Value(y_);
    if (options_.seed.empty()) return FullLike(y, 1);
    return Fit(b_.Value(options_.seed), y);
  }

  // A gradient in the type and shape of its value.
  Expr Fit(const Expr& g, const Expr& x) { return FitTo(CastLike(g, x), x); }

  absl::Status Walk() {
    gradients_[y_] = Seed();
    ONWARD_RETURN_IF_ERROR(b_.status());
    for (auto step = tape_.rbegin(); step != tape_.rend(); ++step) {
      const size_t before = graph_.nodes.size();
      absl::Status status = Back(*step);
      if (!status.ok()) {
        return Annotate(status, absl::StrCat("while differentiating ", step->node.Describe(), ", ",
                                             OpVersion(step->node)));
      }
      for (size_t i = before; i < graph_.nodes.size(); ++i) {
        if (graph_.nodes[i].origin.empty()) {
          graph_.nodes[i].origin = absl::StrCat("the gradient of ", step->node.Describe());
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status Back(Step& step) {
    const Node& node = step.node;
    std::vector<std::optional<Expr>> dys(node.outputs.size());
    bool arrives = false;
    for (size_t i = 0; i < dys.size(); ++i) {
      auto it = gradients_.find(node.outputs[i]);
      if (it == gradients_.end() || x_set_.contains(node.outputs[i])) continue;
      dys[i] = it->second;
      arrives = true;
    }
    if (!arrives) return absl::OkStatus();
    std::vector<bool> needs(node.inputs.size());
    for (size_t i = 0; i < needs.size(); ++i) {
      needs[i] = active_.contains(node.inputs[i]) && Carries(node.inputs[i]);
    }
    const Vjp vjp(b_, node, std::move(dys), needs, [&](int i) { return AddOutput(&step, i); });
    const Grads grads = (*step.rule)(vjp);
    ONWARD_RETURN_IF_ERROR(b_.status());
    if (grads.size() > node.inputs.size()) {
      return absl::InternalError(absl::StrCat("the rule gives ", grads.size(), " gradients for ",
                                              node.inputs.size(), " inputs"));
    }
    for (size_t i = 0; i < grads.size(); ++i) {
      if (needs[i] && grads[i].has_value() && grads[i]->defined()) Accumulate(node.inputs[i], *grads[i]);
    }
    return b_.status();
  }

  void Accumulate(const std::string& value, const Expr& g) {
    Expr x = b_.Value(value);
    Expr part = Fit(g, x);
    auto [it, is_first] = gradients_.try_emplace(value, part);
    if (!is_first) it->second = WithShapeOf(it->second + part, x);
  }

  Expr AddOutput(Step* step, int output) {
    const size_t size = static_cast<size_t>(output) + 1;
    Node& node = graph_.nodes[step->index];
    if (node.outputs.size() < size) node.outputs.resize(size);
    if (node.outputs[output].empty()) {
      node.outputs[output] = b_.UniqueName(prefix_);
      added_outputs_.push_back({step->index, size - 1});
      auto types = options_.operators->Infer(node, Facts(node), graph_.opsets);
      if (!types.ok()) return b_.Fail(types.status());
      graph_.types[node.outputs[output]] = (*types)[output];
    }
    if (step->node.outputs.size() < size) step->node.outputs.resize(size);
    step->node.outputs[output] = node.outputs[output];
    return b_.Value(node.outputs[output]);
  }

  // --- The result ---

  absl::StatusOr<Gradients> Collect() {
    std::vector<std::string> values;
    for (const std::string& x : xs_) {
      auto it = gradients_.find(x);
      values.push_back(it != gradients_.end() ? it->second.name() : FullLike(b_.Value(x), 0).name());
    }
    ONWARD_RETURN_IF_ERROR(b_.status());
    RemoveUnused(&graph_, first_generated_, values);
    MergeEqual(&graph_, first_generated_, &values);
    DropUnusedOutputs();
    NameGradients(&values);
    ONWARD_RETURN_IF_ERROR(b_.status());
    ForgetDimNames(&graph_);
    return Gradients{std::move(graph_), std::move(values)};
  }

  // Each x has a gradient of its own name; Identity where two share a value.
  void NameGradients(std::vector<std::string>* values) {
    const ValueSet renamable = RenamableValues(graph_, first_generated_);
    absl::flat_hash_map<std::string, std::string> names;
    std::vector<std::string> final_names;
    for (size_t i = 0; i < xs_.size(); ++i) {
      final_names.push_back(b_.UniqueName(absl::StrCat(xs_[i], "__grad")));
      if (renamable.contains((*values)[i])) names.try_emplace((*values)[i], final_names[i]);
    }
    RenameGenerated(&graph_, first_generated_, names);
    for (size_t i = 0; i < xs_.size(); ++i) {
      auto it = names.find((*values)[i]);
      const std::string& current = it == names.end() ? (*values)[i] : it->second;
      if (current != final_names[i]) b_.Named(b_.Value(current), final_names[i]);
    }
    *values = std::move(final_names);
  }

  // Takes back outputs that a rule asked for and nothing reads.
  void DropUnusedOutputs() {
    ValueSet read;
    for (const Node& node : graph_.nodes) {
      for (std::string& v : AllInputs(node)) read.insert(std::move(v));
    }
    for (const auto& [index, output] : added_outputs_) {
      if (index >= first_generated_) continue;
      std::vector<std::string>& outputs = graph_.nodes[index].outputs;
      if (read.contains(outputs[output])) continue;
      graph_.types.erase(outputs[output]);
      outputs[output].clear();
      while (!outputs.empty() && outputs.back().empty()) outputs.pop_back();
    }
  }

  Graph graph_;
  const std::string y_;
  const std::vector<std::string>& xs_;
  const ValueSet x_set_;
  const DifferentiateOptions& options_;
  const RuleTable& rules_;
  const std::string prefix_;
  const size_t first_generated_;  // nodes before it are the forward graph
  GraphBuilder b_;

  ValueSet needed_;  // what y is computed from, up to the xs
  ValueSet active_;  // what depends on an x
  absl::flat_hash_map<std::string, std::string> toward_y_, from_;
  std::vector<Step> tape_;
  std::vector<Obstacle> obstacles_;
  absl::flat_hash_map<std::string, Expr> gradients_;
  std::vector<std::pair<size_t, size_t>> added_outputs_;  // node, output
};

}  // namespace

absl::StatusOr<Gradients> Differentiate(const Graph& graph, const std::string& y,
                                        const std::vector<std::string>& xs,
                                        const DifferentiateOptions& options) {
  if (options.operators == nullptr) {
    return absl::InvalidArgumentError("DifferentiateOptions.operators is not set");
  }
  if (graph.opset() < kOldestOpset) {
    return absl::FailedPreconditionError(
        absl::StrCat("graph '", graph.name, "' is at opset ", graph.opset(),
                     "; gradients are written in forms of opset ", kOldestOpset,
                     ": raise the graph first (RaiseOpset)"));
  }
  const RuleTable& rules = options.rules != nullptr ? *options.rules : DefaultRules();
  ONWARD_ASSIGN_OR_RETURN(Graph forward, PrepareForward(graph, *options.operators, rules));
  std::string prefix = options.prefix.empty() ? absl::StrCat(y, "__vjp") : options.prefix;
  return Engine(std::move(forward), y, xs, options, rules, std::move(prefix)).Run();
}

}  // namespace onward
