// SPDX-License-Identifier: Apache-2.0
#include "tests/support/recognised.h"

#include <gtest/gtest.h>

#include "core/graph/infer.h"
#include "core/graph/patterns/recognise.h"
#include "core/graph/verify.h"
#include "environment/environment.h"
#include "tests/support/text_model.h"

namespace onward {

Graph TypedGraph(const std::string& text) {
  auto graph = InferenceGraph(TextModel(text));
  EXPECT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(InferTypes(&*graph, DefaultEnvironment().operators()).ok());
  return *std::move(graph);
}

std::vector<std::string> OperatorsOf(const Graph& graph) {
  std::vector<std::string> ops;
  for (const Node& node : graph.nodes) {
    if (!node.Is("Constant")) ops.push_back(node.op_type);
  }
  return ops;
}

std::optional<Graph> Recognised(const Graph& before, const std::vector<std::string>& keep,
                                const std::vector<std::string>& left) {
  Graph after = before;
  const int found = RecogniseOperators(&after, {keep.begin(), keep.end()});
  if (left.empty()) {
    EXPECT_EQ(found, 0);
    EXPECT_EQ(ToText(after), ToText(before));
    return std::nullopt;
  }
  EXPECT_EQ(found, 1);
  EXPECT_EQ(OperatorsOf(after), left) << ToText(after);
  EXPECT_TRUE(FindingsToStatus(CheckGraph(after)).ok()) << ToText(after);
  EXPECT_TRUE(InferTypes(&after, DefaultEnvironment().operators()).ok());
  for (const Node& node : after.nodes) {
    for (const std::string& out : node.outputs) EXPECT_NE(after.TypeOf(out), nullptr) << out;
  }
  return after;
}

}  // namespace onward
