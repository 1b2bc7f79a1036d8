// SPDX-License-Identifier: Apache-2.0
#include "autograd/body.h"

#include "autograd/prepare.h"
#include "core/base/status.h"
#include "core/graph/verify.h"

namespace onward {

BodyBuilder::BodyBuilder(GraphBuilder& around, Graph graph)
    : around_(around),
      graph_(std::move(graph)),
      builder_(&graph_, around.operators(), "in", &around.names()) {
  graph_.opsets = around.graph().opsets;
}

Expr BodyBuilder::Captured(const Expr& value) {
  graph_.types[value.name()] = value.type();
  return builder_.Value(value.name());
}

Expr BodyBuilder::Give(std::string name, Node node) {
  node.outputs = {name};
  builder_.Append(std::move(node));
  return builder_.Value(std::move(name));
}

absl::StatusOr<Attribute::Body> BodyBuilder::Finish() {
  ONWARD_RETURN_IF_ERROR(builder_.status());
  ONWARD_RETURN_IF_ERROR(SortNodes(&graph_));
  for (const auto& [domain, version] : graph_.opsets) {
    around_.graph().opsets.try_emplace(domain, version);
  }
  for (auto* list : {&graph_.inputs, &graph_.outputs}) {
    for (NamedType& value : *list) ForgetDimNames(&value.type);
  }
  graph_.types.clear();
  graph_.opsets.clear();
  graph_.functions.clear();
  return std::make_shared<const Graph>(std::move(graph_));
}

absl::StatusOr<Attribute::Body> MakeBody(
    GraphBuilder& around, const std::vector<ValueType>& inputs,
    absl::FunctionRef<Expr(GraphBuilder&, const std::vector<Expr>&)> each) {
  Graph graph;
  graph.name = "body";
  BodyBuilder body(around, std::move(graph));
  std::vector<Expr> values;
  for (const ValueType& type : inputs) {
    values.push_back(body.b().Input(body.b().UniqueName("in"), type));
  }
  body.b().Output(each(body.b(), values));
  return body.Finish();
}

}  // namespace onward
