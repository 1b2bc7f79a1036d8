// SPDX-License-Identifier: Apache-2.0
// Which optimizer steps may update some rows only is what functions declare, not names that
// the compiler knows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/onnx_io/operators.h"
#include "core/runtime/rewrite/fuse.h"

namespace onward::row_update_test {

using testing::ElementsAre;

// G = GatherGrad(dy, indices, X), of which 2 rows in 100 are not zero; X' = mine.Step(X, G)
Graph EmbeddingStep() {
  Graph graph;
  graph.opsets = {{"", kCanonicalOpset}, {std::string(kOnwardDomain), kOnwardVersion}, {"mine", 1}};
  graph.types["dy"] = ValueType::Of(DType::kFloat, {2, 4});
  graph.types["indices"] = ValueType::Of(DType::kInt64, {2});
  for (const char* table : {"X", "G", "X_new"}) {
    graph.types[table] = ValueType::Of(DType::kFloat, {100, 4});
  }
  Node gather, step;
  gather.op_type = "GatherGrad";
  gather.domain = std::string(kOnwardDomain);
  gather.inputs = {"dy", "indices", "X"};
  gather.outputs = {"G"};
  step.op_type = "Step";
  step.domain = "mine";
  step.inputs = {"X", "G"};
  step.outputs = {"X_new"};
  graph.nodes = {gather, step};
  graph.outputs = {{"X_new", graph.types["X_new"]}};
  return graph;
}

std::vector<std::string> OperatorsAfter(const FunctionTraits& traits, Graph* graph) {
  FunctionLibrary library;
  FunctionDef step;
  step.traits = traits;
  library.Add("Step", std::move(step), "mine");
  UpdateRowsOnly({}, *MakeOnnxOperators(&library), graph);
  std::vector<std::string> names;
  for (const Node& node : graph->nodes) names.push_back(node.op_type);
  return names;
}

TEST(RowUpdate, IsWhatTheFunctionDeclares) {
  Graph graph = EmbeddingStep();
  EXPECT_THAT(
      OperatorsAfter({.row_update = RowUpdate{.x = 0, .function = "RowsStep", .holds = nullptr}},
                     &graph),
      ElementsAre("GatherGradRows", "RowsStep"));
  const std::vector<std::string>& rows = graph.nodes[0].outputs;
  EXPECT_THAT(rows, ElementsAre(testing::_, "G"));
  EXPECT_THAT(graph.nodes[1].inputs, ElementsAre("X", rows[0], "G"));
}

TEST(RowUpdate, NeedsTheDeclarationToHoldForTheCall) {
  Graph graph = EmbeddingStep();
  EXPECT_THAT(OperatorsAfter({}, &graph), ElementsAre("GatherGrad", "Step"));
  const auto never = [](const Node&) { return false; };
  EXPECT_THAT(
      OperatorsAfter({.row_update = RowUpdate{.x = 0, .function = "RowsStep", .holds = never}},
                     &graph),
      ElementsAre("GatherGrad", "Step"));
  // The gradient stands elsewhere.
  EXPECT_THAT(
      OperatorsAfter({.row_update = RowUpdate{.x = 1, .function = "RowsStep", .holds = nullptr}},
                     &graph),
      ElementsAre("GatherGrad", "Step"));
}

}  // namespace onward::row_update_test
