// SPDX-License-Identifier: Apache-2.0
// Gradients of operators that older opsets write otherwise: through what they become when they
// are raised, and of themselves.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "autograd/differentiate.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/support/graph_case.h"
#include "tests/support/test_environment.h"
#include "tests/support/text_model.h"

namespace onward::old_opset_test {

constexpr char kGroups[] = R"(<ir_version: 8, opset_import: ["" : 18]>
  g (double[2, 4, 3] x, double[2] s, double[2] b) => (double[2, 4, 3] y) {
    h = Sin (x)
    n = GroupNormalization <num_groups = 2> (h, s, b)
    y = Mul (n, x)
  })";

std::vector<GraphCase> Cases() {
  return {
      {"GroupNormalization", kGroups, {}},
      {"ResizeBothWays",
       R"(<ir_version: 4, opset_import: ["" : 10]>
         g (double[5, 3] x) => (double[h, w] y) {
           f = Constant <value = float[2] {0.4, 1.5}> ()
           y = Resize (x, f)
         })",
       {}},
  };
}

class OldOpsetGradient : public testing::TestWithParam<GraphCase> {};

TEST_P(OldOpsetGradient, IsThatOfDifferences) { CheckGraphCase(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Autograd, OldOpsetGradient, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

// A gradient that is written at opset 18 is raised when it runs.
TEST(OldOpsets, GroupsHaveAScaleEach) {
  DifferentiateOptions options;
  options.operators = &DefaultEnvironment().operators();
  options.rules = &DefaultEnvironment().rules();
  const Graph old = InferenceGraph(TextModel(kGroups)).value();
  const Graph raised = RaiseOpset(old, kCanonicalOpset).value();
  TensorMap feeds;
  for (const NamedType& in : old.inputs) {
    Tensor& x = feeds[in.name] = Tensor(DType::kDouble, in.type.StaticShape().value());
    for (int64_t i = 0; i < x.elements(); ++i) {
      x.data<double>()[i] = 0.1 * static_cast<double>(i * i % 7);
    }
  }
  std::vector<std::vector<std::vector<double>>> slopes;
  for (const Graph& graph : {old, raised}) {
    const auto gradients = Differentiate(graph, "y", {"x", "s", "b"}, options);
    ASSERT_TRUE(gradients.ok()) << gradients.status();
    CompileOptions compile = TestEnvironment().compile_options();
    compile.outputs = gradients->values;
    Session session(RaiseOpset(gradients->graph, kCanonicalOpset).value(), compile);
    Variables none;
    const auto found = session.Run(feeds, &none);
    ASSERT_TRUE(found.ok()) << found.status();
    slopes.emplace_back();
    for (const std::string& name : gradients->values) {
      slopes.back().push_back(Values(found->at(name)));
    }
  }
  for (size_t i = 0; i < slopes[0].size(); ++i) {
    ASSERT_EQ(slopes[0][i].size(), slopes[1][i].size());
    for (size_t k = 0; k < slopes[0][i].size(); ++k) {
      EXPECT_NEAR(slopes[0][i][k], slopes[1][i][k], 1e-12);
    }
  }
}

}  // namespace onward::old_opset_test
