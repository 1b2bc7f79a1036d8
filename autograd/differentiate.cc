// SPDX-License-Identifier: Apache-2.0
// The engine: walks the tape backwards, asks each rule for the gradients of its
// node's inputs, and does once for all rules what follows: types, shapes, sums.
#include "autograd/differentiate.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "autograd/close_body.h"
#include "autograd/prepare.h"
#include "autograd/shape_expr.h"
#include "autograd/tape.h"
#include "autograd/tidy.h"
#include "autograd/values.h"
#include "core/base/status.h"
#include "core/graph/builder.h"
#include "core/graph/infer_bodies.h"
#include "core/graph/verify.h"

namespace onward {
namespace {

constexpr int kOldestOpset = 18;  // whose operator forms rules emit

bool Exists(const Graph& graph, const std::string& value) {
  if (value.empty()) return false;
  if (graph.IsInput(value) || graph.initializers.contains(value)) return true;
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return std::find(node.outputs.begin(), node.outputs.end(), value) != node.outputs.end();
  });
}

absl::Status CheckValue(const Graph& graph, const std::string& role, const std::string& value) {
  if (!Exists(graph, value)) {
    return absl::InvalidArgumentError(
        absl::StrCat(role, " '", value, "' names no value of graph '", graph.name, "'"));
  }
  const ValueType* type = graph.TypeOf(value);
  if (type == nullptr || !type->known()) return absl::OkStatus();
  if (type->is_tensor() && IsFloating(type->dtype)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(role, " '", value, "' has type ", type->ToString(),
                   "; gradients exist for floating-point tensors only"));
}

std::vector<std::string> ValuesOf(const std::vector<SeededValue>& ys) {
  std::vector<std::string> values;
  for (const SeededValue& y : ys) values.push_back(y.value);
  return values;
}

std::vector<SeededValue> SeededOf(const ClosedBody& body) {
  std::vector<SeededValue> ys;
  for (size_t i = 0; i < body.ys.size(); ++i) ys.push_back({body.ys[i], body.seeds[i]});
  return ys;
}

class Engine {
 public:
  // Of a whole graph.
  Engine(Graph forward, const std::vector<SeededValue>& ys, const std::vector<std::string>& xs,
         const DifferentiateOptions& options, int* next_dim)
      : graph_(std::move(forward)),
        seeded_(ys),
        ys_(ValuesOf(ys)),
        xs_(xs),
        options_(options),
        prefix_(options.prefix.empty() ? absl::StrCat(ys_[0], "__vjp") : options.prefix),
        first_generated_(graph_.nodes.size()),
        next_dim_(next_dim),
        b_(&graph_, options.operators, prefix_),
        tape_(b_, *options.rules, prefix_, ys_, xs_, options.stop, next_dim) {
    b_.names().ReserveAll(options.reserved);
  }

  // Of a body within the graph of another engine.
  Engine(Graph forward, const ClosedBody& body, Engine& around)
      : graph_(std::move(forward)),
        seeded_(SeededOf(body)),
        ys_(body.ys),
        xs_(body.xs),
        options_(around.options_),
        prefix_(around.prefix_),
        first_generated_(graph_.nodes.size()),
        next_dim_(around.next_dim_),
        b_(&graph_, options_.operators, prefix_, &around.b_.names()),
        tape_(b_, *options_.rules, prefix_, ys_, xs_, {}, next_dim_) {}

  absl::StatusOr<Gradients> Run() {
    ONWARD_RETURN_IF_ERROR(Check());
    ONWARD_RETURN_IF_ERROR(tape_.Record());
    Seed();
    ONWARD_RETURN_IF_ERROR(Walk());
    if (!blocks_.empty()) return ReportToStatus(Report(), blocks_);
    ONWARD_ASSIGN_OR_RETURN(std::vector<std::string> values, Collect());
    NameGradients(&values);
    ONWARD_RETURN_IF_ERROR(b_.status());
    ONWARD_RETURN_IF_ERROR(PlaceEarlyNodes());
    ForgetDimNames(&graph_);
    return Gradients{std::move(graph_), std::move(values)};
  }

  absl::StatusOr<GradientReport> RunReport() {
    ONWARD_RETURN_IF_ERROR(Check());
    ONWARD_RETURN_IF_ERROR(tape_.Record());
    Seed();
    ONWARD_RETURN_IF_ERROR(Walk());
    return Report();
  }

  // The seeds have the types of the values whose gradients they are.
  absl::StatusOr<Gradients> RunBody() {
    ONWARD_RETURN_IF_ERROR(tape_.Record());
    for (const SeededValue& y : seeded_) {
      graph_.types[y.seed] = GradientType(b_.Value(y.value).type());
      Accumulate(y.value, b_.Value(y.seed));
    }
    ONWARD_RETURN_IF_ERROR(Walk());
    if (!blocks_.empty()) return ReportToStatus(Report(), blocks_);
    ONWARD_ASSIGN_OR_RETURN(std::vector<std::string> values, Collect());
    HoldApart(&values);
    ONWARD_RETURN_IF_ERROR(b_.status());
    ONWARD_RETURN_IF_ERROR(PlaceEarlyNodes());
    return Gradients{std::move(graph_), std::move(values)};
  }

 private:
  absl::Status Check() const {
    for (const SeededValue& y : seeded_) {
      ONWARD_RETURN_IF_ERROR(CheckValue(graph_, "y", y.value));
      if (!y.seed.empty()) ONWARD_RETURN_IF_ERROR(CheckValue(graph_, "the seed", y.seed));
    }
    for (const std::string& x : xs_) ONWARD_RETURN_IF_ERROR(CheckValue(graph_, "x", x));
    for (const std::string& value : options_.stop) {
      if (Exists(graph_, value)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("'", value, "', where gradients are to stop, names no value of graph '",
                       graph_.name, "'"));
    }
    return absl::OkStatus();
  }

  GradientReport Report() const {
    return MakeReport(tape_, ys_, xs_, blocks_,
                      [&](const std::string& x) { return gradients_.contains(x); });
  }

  absl::StatusOr<BodyGradients> DeriveBody(const BodyRequest& request) {
    const ClosedBody closed = CloseBody(request, prefix_, b_);
    ONWARD_ASSIGN_OR_RETURN(Graph forward, PrepareForward(closed.graph, *options_.operators,
                                                          *options_.rules, next_dim_, &b_.names()));
    Engine engine(std::move(forward), closed, *this);
    absl::StatusOr<Gradients> inner = engine.RunBody();
    if (!inner.ok()) {
      GradientReport report = engine.Report();
      for (Obstacle& obstacle : report.obstacles) {
        obstacle.node = closed.InOwnNames(obstacle.node);
        obstacle.inside = closed.InOwnNames(obstacle.inside);
        obstacle.reason = closed.InOwnNames(obstacle.reason);
        within_.push_back(std::move(obstacle));
      }
      return inner.status();
    }
    return OpenBody(closed, *std::move(inner));
  }

  void Seed() {
    for (const SeededValue& y : seeded_) {
      const Expr value = b_.Value(y.value);
      Accumulate(y.value,
                 y.seed.empty() ? FullLike(value, 1) : FitGradient(b_.Value(y.seed), value));
    }
  }

  // `part` has the type and shape that the value's gradient has.
  void Accumulate(const std::string& value, const Expr& part) {
    auto [it, is_first] = gradients_.try_emplace(value, part);
    if (!is_first) it->second = AddGradients(it->second, part, b_.Value(value));
  }

  absl::Status Walk() {
    ONWARD_RETURN_IF_ERROR(b_.status());
    std::vector<Step>& steps = tape_.steps();
    for (size_t i = steps.size(); i-- > 0;) {
      Step& step = steps[i];
      if (!Arrives(step.node)) continue;
      const size_t before = graph_.nodes.size();
      absl::Status refusal;
      within_.clear();
      if (step.rule != nullptr) refusal = StepBack(step);
      if (step.rule == nullptr || !refusal.ok()) {
        blocks_.insert(blocks_.begin(), {i, std::move(refusal), std::move(within_)});
        ONWARD_RETURN_IF_ERROR(PassObstacle(step.node));
      }
      for (size_t k = before; k < graph_.nodes.size(); ++k) {
        if (graph_.nodes[k].origin.empty()) {
          graph_.nodes[k].origin = absl::StrCat("the gradient of ", step.node.Describe());
        }
      }
    }
    return absl::OkStatus();
  }

  // Whether a gradient arrives at the node. An x is an end: its gradient is not handed on.
  bool Arrives(const Node& node) const {
    return std::any_of(node.outputs.begin(), node.outputs.end(), [&](const std::string& out) {
      return gradients_.contains(out) && !tape_.IsX(out);
    });
  }

  // Goes on behind a node that no gradient passes, so that all such nodes are found; what is
  // built from here on is thrown away.
  absl::Status PassObstacle(const Node& node) {
    b_.Forget();
    for (const std::string& in : AllInputs(node)) {
      if (tape_.IsActive(in)) gradients_.try_emplace(in, ZerosOf(b_.Value(in)));
    }
    return b_.status();
  }

  // From the gradients of a node's outputs to those of its inputs.
  absl::Status StepBack(Step& step) {
    const Node& node = step.node;
    std::vector<std::optional<Expr>> dys(node.outputs.size());
    for (size_t i = 0; i < dys.size(); ++i) {
      auto it = gradients_.find(node.outputs[i]);
      if (it != gradients_.end() && !tape_.IsX(node.outputs[i])) dys[i] = it->second;
    }
    std::vector<bool> needs(node.inputs.size());
    for (size_t i = 0; i < needs.size(); ++i) needs[i] = tape_.IsActive(node.inputs[i]);
    const Vjp vjp(
        b_, node, std::move(dys), needs, [&](int i) { return AddOutput(&step, i); },
        [&](Node by, std::vector<Node> before) { Replace(step, std::move(by), std::move(before)); },
        [&](const BodyRequest& request) { return DeriveBody(request); });
    const Grads grads = (*step.rule)(vjp);
    ONWARD_RETURN_IF_ERROR(b_.status());
    if (grads.size() > node.inputs.size()) {
      return absl::InternalError(absl::StrCat("the rule gives ", grads.size(), " gradients for ",
                                              node.inputs.size(), " inputs"));
    }
    for (size_t i = 0; i < grads.size(); ++i) {
      if (needs[i] && grads[i].has_value() && grads[i]->defined())
        Accumulate(node.inputs[i], FitGradient(*grads[i], b_.Value(node.inputs[i])));
    }
    return b_.status();
  }

  // Gives a node of the graph an output it leaves out.
  Expr AddOutput(Step* step, int output) {
    const size_t size = static_cast<size_t>(output) + 1;
    Node& node = graph_.nodes[step->index];
    if (node.outputs.size() < size) node.outputs.resize(size);
    if (node.outputs[output].empty()) {
      node.outputs[output] = b_.UniqueName(prefix_);
      added_outputs_.push_back({step->index, size - 1});
      auto types = b_.TypesOf(node);
      if (!types.ok()) return b_.Fail(types.status());
      graph_.types[node.outputs[output]] = (*types)[output];
    }
    if (step->node.outputs.size() < size) step->node.outputs.resize(size);
    step->node.outputs[output] = node.outputs[output];
    return b_.Value(node.outputs[output]);
  }

  // Puts `by` in the place of a node of the graph. It names outputs as the step does.
  void Replace(const Step& step, Node by, std::vector<Node> before) {
    Node& node = graph_.nodes[step.index];
    for (size_t i = 0; i < by.outputs.size(); ++i) {
      std::string& out = by.outputs[i];
      const auto at = std::find(step.node.outputs.begin(), step.node.outputs.end(), out);
      if (at != step.node.outputs.end() && !out.empty()) {
        out = node.outputs[at - step.node.outputs.begin()];
      } else if (!out.empty()) {
        added_outputs_.push_back({step.index, i});
      }
    }
    by.name = node.name;
    by.origin = node.origin;
    ImportDomain(by.domain, &graph_);
    for (Node& early : before) {
      auto types = b_.TypesOf(early);
      if (!types.ok()) {
        b_.Fail(types.status());
        return;
      }
      for (size_t i = 0; i < early.outputs.size(); ++i)
        graph_.types[early.outputs[i]] = (*types)[i];
      early_.push_back(std::move(early));
    }
    auto types = b_.TypesOf(by);
    if (!types.ok()) {
      b_.Fail(types.status());
      return;
    }
    for (size_t i = 0; i < by.outputs.size(); ++i) {
      if (by.outputs[i].empty()) continue;
      auto [it, is_new] = graph_.types.try_emplace(by.outputs[i], (*types)[i]);
      if (is_new) NameDims(&it->second, next_dim_);
    }
    node = std::move(by);
  }

  // The gradient of each x, as generated nodes have it.
  absl::StatusOr<std::vector<std::string>> Collect() {
    std::vector<std::string> values;
    for (const std::string& x : xs_) {
      auto it = gradients_.find(x);
      values.push_back(it != gradients_.end() ? it->second.name() : ZerosOf(b_.Value(x)).name());
    }
    ONWARD_RETURN_IF_ERROR(b_.status());
    RemoveUnused(&graph_, first_generated_, values);
    MergeEqual(&graph_, first_generated_, &values);
    DropUnusedOutputs();
    return values;
  }

  // What replaced nodes read stands among the forward nodes.
  absl::Status PlaceEarlyNodes() {
    if (early_.empty()) return absl::OkStatus();
    for (Node& node : early_) graph_.nodes.push_back(std::move(node));
    return SortNodes(&graph_);
  }

  // Takes back outputs that a rule asked for and nothing reads.
  void DropUnusedOutputs() {
    absl::flat_hash_set<std::string> read;
    for (const Node& node : graph_.nodes) {
      for (std::string& v : AllInputs(node)) read.insert(std::move(v));
    }
    for (const auto& [index, output] : added_outputs_) {
      if (index >= first_generated_) continue;
      std::vector<std::string>& outputs = graph_.nodes[index].outputs;
      // A body gives as many as its node.
      if (RunsBodies(graph_.nodes[index])) continue;
      if (read.contains(outputs[output])) continue;
      graph_.types.erase(outputs[output]);
      outputs[output].clear();
      while (!outputs.empty() && outputs.back().empty()) outputs.pop_back();
    }
  }

  // Each x has a gradient of its own name; Identity where two share a value.
  void NameGradients(std::vector<std::string>* values) {
    const auto renamable = RenamableValues(graph_, first_generated_);
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

  // Each gradient of a body is a value of its own that a node of the body gives.
  void HoldApart(std::vector<std::string>* values) {
    absl::flat_hash_set<std::string> given;
    for (size_t i = first_generated_; i < graph_.nodes.size(); ++i) {
      given.insert(graph_.nodes[i].outputs.begin(), graph_.nodes[i].outputs.end());
    }
    for (std::string& value : *values) {
      if (given.erase(value) == 0) value = b_.Op("Identity", {b_.Value(value)}).name();
    }
  }

  Graph graph_;
  const std::vector<SeededValue> seeded_;
  const std::vector<std::string> ys_, xs_;
  const DifferentiateOptions& options_;
  const std::string prefix_;
  const size_t first_generated_;  // nodes before it are the forward graph
  int* const next_dim_;           // counts names of unknown dimensions
  GraphBuilder b_;
  Tape tape_;
  absl::flat_hash_map<std::string, Expr> gradients_;
  std::vector<std::pair<size_t, size_t>> added_outputs_;  // node, output
  std::vector<Block> blocks_;
  std::vector<Obstacle> within_;  // what stopped the gradient of the step's body
  std::vector<Node> early_;       // what replaced forward nodes read
};

absl::Status CheckOptions(const Graph& graph, const DifferentiateOptions& options) {
  if (options.operators == nullptr) {
    return absl::InvalidArgumentError("DifferentiateOptions.operators is not set");
  }
  if (graph.opset() < kOldestOpset) {
    return absl::FailedPreconditionError(
        absl::StrCat("graph '", graph.name, "' is at opset ", graph.opset(),
                     "; gradients are written in forms of opset ", kOldestOpset,
                     ": raise the graph first (RaiseOpset)"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Gradients> Differentiate(const Graph& graph, const std::vector<SeededValue>& ys,
                                        const std::vector<std::string>& xs,
                                        const DifferentiateOptions& options) {
  ONWARD_RETURN_IF_ERROR(CheckOptions(graph, options));
  if (ys.empty()) return absl::InvalidArgumentError("nothing is named to differentiate");
  int next_dim = 0;
  ONWARD_ASSIGN_OR_RETURN(Graph forward,
                          PrepareForward(graph, *options.operators, *options.rules, &next_dim));
  return Engine(std::move(forward), ys, xs, options, &next_dim).Run();
}

absl::StatusOr<Gradients> Differentiate(const Graph& graph, const std::string& y,
                                        const std::vector<std::string>& xs,
                                        const DifferentiateOptions& options) {
  return Differentiate(graph, std::vector<SeededValue>{{y, ""}}, xs, options);
}

absl::StatusOr<GradientReport> ReportGradients(const Graph& graph, const std::string& y,
                                               const std::vector<std::string>& xs,
                                               const DifferentiateOptions& options) {
  ONWARD_RETURN_IF_ERROR(CheckOptions(graph, options));
  int next_dim = 0;
  ONWARD_ASSIGN_OR_RETURN(Graph forward,
                          PrepareForward(graph, *options.operators, *options.rules, &next_dim));
  const std::vector<SeededValue> ys = {{y, ""}};
  return Engine(std::move(forward), ys, xs, options, &next_dim).RunReport();
}

}  // namespace onward
