// SPDX-License-Identifier: Apache-2.0
#include "autograd/rules/replay.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "autograd/as_loop.h"
#include "autograd/prepare.h"
#include "autograd/rules/kept.h"
#include "autograd/rules/loop.h"
#include "core/base/status.h"
#include "core/graph/filled.h"
#include "core/graph/infer_bodies.h"
#include "core/graph/random.h"

namespace onward {
namespace {

// The values a body sees before its first node, with their types.
Graph ScopeOf(const Graph& body, const std::vector<ValueType>& inputs, GraphBuilder& around) {
  Graph scope;
  scope.opsets = around.graph().opsets;
  scope.functions = around.graph().functions;
  scope.initializers = body.initializers;
  for (size_t i = 0; i < body.inputs.size() && i < inputs.size(); ++i) {
    scope.types[body.inputs[i].name] = inputs[i];
  }
  for (const std::string& name : CapturedValues(body)) {
    const InputFact fact = around.FactOf(name);
    if (fact.constant != nullptr) scope.initializers.emplace(name, *fact.constant);
    if (fact.type != nullptr) scope.types[name] = *fact.type;
  }
  for (const auto& [name, tensor] : scope.initializers) {
    scope.types[name] = ValueType::Of(tensor.dtype(), tensor.shape());
  }
  return scope;
}

// What a Dropout gives, from the mask that it drew:
//   y = mask ? x * (training ? 1 / (1 - ratio) : 1) : 0
std::vector<Node> DropoutByMask(GraphBuilder& b, const Node& node, const std::string& mask) {
  std::vector<Node> nodes;
  const std::string& x = node.inputs[0];
  const auto add = [&](const char* op, std::vector<std::string> inputs,
                       Attributes attributes = {}) {
    nodes.push_back(Operation(op, std::move(inputs), std::move(attributes)));
    nodes.back().outputs = {b.UniqueName("dropped")};
    return nodes.back().outputs[0];
  };
  const auto number = [&](float value) {
    return add("CastLike", {add("Constant", {}, {{"value", Tensor::Scalar<float>(value)}}), x});
  };
  const std::string one = number(1);
  const std::string ratio = node.HasInput(1) ? add("CastLike", {node.inputs[1], x}) : number(0.5);
  const std::string scale = add("Div", {one, add("Sub", {one, ratio})});
  const std::string used = add("Where", {node.inputs[2], scale, one});
  const std::string scaled = add("Mul", {x, used});
  add("Where", {mask, scaled, number(0)});
  if (!node.outputs[0].empty()) nodes.back().outputs[0] = node.outputs[0];
  return nodes;
}

// Stands for what a branch does not draw. Dimensions that nothing tells beforehand are zero in it.
Expr Placeholder(const ValueType& type, GraphBuilder& branch) {
  if (!type.is_tensor()) {
    return branch.Op("SequenceEmpty", {}, {{"dtype", static_cast<int64_t>(type.leaf())}});
  }
  std::vector<int64_t> sizes;
  for (const Dim& dim : type.dims) sizes.push_back(dim.known() ? dim.value : 0);
  return Filled(branch.Ints(std::move(sizes)), type.dtype, 0);
}

// What holds for a draw and for its placeholder.
ValueType OfEither(ValueType type) {
  for (Dim& dim : type.dims) {
    if (!dim.known()) dim = Dim{};
  }
  return type;
}

// Gives the branch one more output.
void GiveToo(const Expr& value, ValueType type) {
  ForgetDimNames(&type);
  value.builder().graph().outputs.push_back({value.name(), std::move(type)});
}

Attribute BodyAttribute(Graph graph) { return std::make_shared<const Graph>(std::move(graph)); }

class BodyReplay {
 public:
  BodyReplay(const Graph& body, const std::vector<ValueType>& inputs, GraphBuilder& around)
      : body_(body),
        scope_(ScopeOf(body, inputs, around)),
        b_(&scope_, around.operators(), "in", &around.names()) {}

  Replay Run() {
    for (const Node& node : body_.nodes) Visit(node);
    Replay replay{body_, body_, std::move(drawn_)};
    replay.drawing.nodes = std::move(drawing_);
    replay.replaying.nodes = std::move(replaying_);
    for (const NamedType& draw : replay.drawn) replay.replaying.inputs.push_back(draw);
    return replay;
  }

 private:
  void Visit(const Node& node) {
    b_.Append(node);
    b_.Forget();  // what cannot be typed is not replayed
    if (!DrawsRandom(scope_, node)) return Both(node);
    if (node.Is("Scan") || node.Is("SequenceMap")) {
      if (absl::StatusOr<std::vector<Node>> opened = AsLoop(node, b_); opened.ok()) {
        for (const Node& part : *opened) Visit(part);
        return;
      }
    }
    if (IsRandom(node)) return VisitDraw(node);
    if (node.Is("If")) return VisitIf(node);
    if (node.Is("Loop")) return VisitLoop(node);
    Both(node);
  }

  void Both(const Node& node) {
    drawing_.push_back(node);
    replaying_.push_back(node);
  }

  void VisitDraw(const Node& node) {
    const bool drops = node.Is("Dropout");
    const ValueType* type = scope_.TypeOf(drops ? node.inputs[0] : node.outputs[0]);
    if (type == nullptr || type->dtype == DType::kUndefined) return Both(node);
    ValueType drawn = *type;
    Node drawing = node;
    if (drops) {
      drawing.outputs.resize(2);
      if (drawing.outputs[1].empty()) drawing.outputs[1] = b_.UniqueName("mask");
      drawn.dtype = DType::kBool;
      for (Node& part : DropoutByMask(b_, drawing, drawing.outputs[1])) {
        replaying_.push_back(std::move(part));
      }
    }
    drawn_.push_back({drawing.outputs[drops ? 1 : 0], std::move(drawn)});
    drawing_.push_back(std::move(drawing));
  }

  void VisitIf(const Node& node) {
    ReplayedIf replayed = ReplayIf(node, b_);
    drawing_.push_back(std::move(replayed.drawing));
    replaying_.push_back(std::move(replayed.replaying));
    drawn_.insert(drawn_.end(), replayed.drawn.begin(), replayed.drawn.end());
  }

  // The Loop hands out what each of its iterations drew; the other one recalls it.
  void VisitLoop(const Node& node) {
    absl::StatusOr<Repeated> loop = RepetitionOf(node, b_);
    if (!loop.ok() || loop->draws.empty()) return Both(node);
    std::vector<Node> before, recalls;
    const std::string number = b_.UniqueName("iteration"), scalar = b_.UniqueName("shape");
    recalls.push_back(Operation("Constant", {}, {{"value", Tensor(DType::kInt64, Shape{0})}}));
    recalls.back().outputs = {scalar};
    recalls.push_back(Operation("Reshape", {loop->replayed.inputs[0].name, scalar}));
    recalls.back().outputs = {number};
    std::vector<NamedType> handed;
    const size_t own = loop->types.size();
    for (size_t i = own; i < loop->replayed_types.size(); ++i) {
      const std::string& name = loop->draws[i - own];
      const absl::StatusOr<Kept> kept = Keep(name, loop->replayed_types[i], b_, &*loop, &before);
      if (!kept.ok()) return Both(node);
      for (NamedType& output : kept->Outputs()) handed.push_back(std::move(output));
      for (Node& recall : Recall(*kept, number, name, b_)) recalls.push_back(std::move(recall));
    }
    for (Node& early : before) drawing_.push_back(std::move(early));
    loop->node.attributes["body"] = BodyAttribute(std::move(loop->body));
    drawing_.push_back(std::move(loop->node));
    Node replaying = node;
    Graph& body = loop->replayed;
    body.inputs.resize(own);
    body.nodes.insert(body.nodes.begin(), recalls.begin(), recalls.end());
    replaying.attributes["body"] = BodyAttribute(std::move(body));
    replaying_.push_back(std::move(replaying));
    for (NamedType& output : handed) drawn_.push_back(std::move(output));
  }

  const Graph& body_;
  Graph scope_;
  GraphBuilder b_;
  std::vector<Node> drawing_, replaying_;
  std::vector<NamedType> drawn_;
};

}  // namespace

Replay ReplayBody(const Graph& body, const std::vector<ValueType>& inputs, GraphBuilder& around) {
  return BodyReplay(body, inputs, around).Run();
}

ReplayedIf ReplayIf(const Node& node, GraphBuilder& around) {
  const char* const names[] = {"then_branch", "else_branch"};
  ReplayedIf made{node, node, {}};
  std::vector<Replay> branches;
  for (const char* name : names) {
    const Graph* branch = node.Subgraph(name);
    if (branch == nullptr || branch->outputs.size() < node.outputs.size()) return made;
    branches.push_back(ReplayBody(*branch, {}, around));
  }
  // Both give as many, before what they drew is added.
  if (branches[0].drawing.outputs.size() != branches[1].drawing.outputs.size()) return made;
  made.drawing.outputs.resize(branches[0].drawing.outputs.size());
  for (std::string& out : made.drawing.outputs) {
    if (out.empty()) out = around.UniqueName("unread");
  }
  for (int k : {0, 1}) {
    Replay& branch = branches[k];
    branch.replaying.inputs.clear();
    std::vector<Node> reads;
    for (const NamedType& draw : branch.drawn) {
      const ValueType type = OfEither(draw.type);
      GraphBuilder own(&branch.drawing, nullptr, "drawn", &around.names());
      GraphBuilder other(&branches[1 - k].drawing, nullptr, "drawn", &around.names());
      GiveToo(own.Op("Identity", {own.Value(draw.name)}), type);
      GiveToo(Placeholder(type, other), type);
      made.drawing.outputs.push_back(around.UniqueName("drawn"));
      made.drawn.push_back({made.drawing.outputs.back(), type});
      reads.push_back(Operation("Identity", {made.drawn.back().name}));
      reads.back().outputs = {draw.name};
    }
    std::vector<Node>& nodes = branch.replaying.nodes;
    nodes.insert(nodes.begin(), reads.begin(), reads.end());
  }
  for (int k : {0, 1}) {
    made.drawing.attributes[names[k]] = BodyAttribute(std::move(branches[k].drawing));
    made.replaying.attributes[names[k]] = BodyAttribute(std::move(branches[k].replaying));
  }
  return made;
}

bool ReplaysAsScan(const Node& scan, GraphBuilder& around) {
  const absl::StatusOr<Repeated> loop = RepetitionOf(scan, around);
  if (!loop.ok()) return true;  // nor can a Loop
  const auto& types = loop->replayed_types;
  return std::all_of(types.begin() + static_cast<int64_t>(loop->types.size()), types.end(),
                     HasOneShape);
}

}  // namespace onward
