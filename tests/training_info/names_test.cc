// SPDX-License-Identifier: Apache-2.0
// A file may use any name, also those that Onward makes up. Each case runs once to learn
// which names are made up, gives them to the values of the file and runs again: the result
// has to be a valid graph that computes the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "autograd/differentiate.h"
#include "core/graph/rename.h"
#include "environment/environment.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"
#include "training_info/import.h"
#include "training_info/lower.h"
#include "training_info/surgery/surgery.h"
#include "training_info/validate.h"

namespace onward::names_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Raised (Softmax), with a function, a training-mode copy (BatchNormalization), and
// initializers that one tensor serves twice.
constexpr char kNetwork[] =
    R"(<ir_version: 8, opset_import: ["" : 12, "local" : 1]>
       m (float[4, 2] x) => (float[4, 3] y)
       <float[2, 3] W1 = {0.1, -0.2, 0.3, 0.4, 0.5, -0.6}, float[3] zeros = {0, 0, 0},
        float[3] ones = {1, 1, 1}, float[3, 3] W2 = {1, 2, 3, 4, 5, 6, 7, 8, 10}> {
         h1 = MatMul(x, W1)
         h2 = Add(h1, zeros)
         n = BatchNormalization(h2, ones, zeros, zeros, ones)
         r = local.Act(n)
         h3 = MatMul(r, W2)
         s = Softmax(h3)
         y = Add(s, zeros)
       }
       <domain: "local", opset_import: ["" : 12]> Act (a) => (c) { b = Sigmoid(a) c = Mul(a, b) })";

TensorMap Feeds(const std::string& label) {
  return {{"x", Floats({4, 2}, {1, 2, -1, 0.5, 0.3, -0.7, 2, 1})},
          {label, Floats({4, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0})}};
}

void AddNames(const Graph& graph, std::set<std::string>* names) {
  for (const NamedType& v : graph.inputs) names->insert(v.name);
  for (const NamedType& v : graph.outputs) names->insert(v.name);
  for (const auto& [name, tensor] : graph.initializers) names->insert(name);
  for (const Node& node : graph.nodes) names->insert(node.outputs.begin(), node.outputs.end());
  names->erase("");
}

std::set<std::string> NamesOf(const Graph& graph) {
  std::set<std::string> names;
  AddNames(graph, &names);
  return names;
}

Graph GraphOf(const std::string& text) {
  auto graph = InferenceGraph(TextModel(text));
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *graph : Graph{};
}

// Every way of giving the names `made_up` to the inner values of `graph`, a handful at a time.
std::vector<Renaming> Disguises(const Graph& graph, const std::set<std::string>& made_up) {
  std::vector<std::string> inner, names(made_up.begin(), made_up.end());
  for (const std::string& v : NamesOf(graph)) {
    if (!graph.IsInput(v) && !graph.IsOutput(v)) inner.push_back(v);
  }
  std::vector<Renaming> disguises;
  for (size_t first = 0; first < names.size(); first += inner.size()) {
    Renaming renaming;
    for (size_t i = 0; i < inner.size() && first + i < names.size(); ++i)
      renaming[inner[i]] = names[first + i];
    disguises.push_back(std::move(renaming));
  }
  return disguises;
}

Model Disguised(Graph graph, const Renaming& renaming) {
  RenameEverywhere(renaming, &graph);
  return ModelFromGraph(graph, 8, "test");
}

std::set<std::string> Without(std::set<std::string> names, const std::set<std::string>& known) {
  for (const std::string& name : known) names.erase(name);
  return names;
}

std::vector<double> LossesOf(const Model& model) {
  auto training = Open(model);
  const std::string loss = model.Metadata(kMetaLoss);
  std::vector<double> losses;
  for (int i = 0; i < 3; ++i) {
    auto out = training->Step(Feeds(model.Metadata(kMetaLabel)), {loss});
    if (!out.ok()) throw std::runtime_error(out.status().ToString());
    losses.push_back(Values(out->at(loss))[0]);
  }
  EXPECT_TRUE(training->Initialize().ok());
  return losses;
}

TEST(Names, OfTrainableModels) {
  const Graph graph = GraphOf(kNetwork);
  for (const GradientForm form : {GradientForm::kOperator, GradientForm::kExpanded}) {
    AuthorOptions options;
    options.loss = {"mse", {}};
    options.gradient = form;
    options.clip_norm = 1;
    auto made = MakeTrainable(ModelFromGraph(graph, 8, "test"), options, DefaultEnvironment());
    ASSERT_TRUE(made.ok()) << made.status();
    const std::vector<double> expected = LossesOf(made->model);
    auto spec = ImportTraining(made->model);
    ASSERT_TRUE(spec.ok()) << spec.status();
    std::set<std::string> names = NamesOf(spec->inference);
    AddNames(spec->entries[0].algorithm, &names);
    AddNames(spec->entries[0].initialization, &names);
    AddNames(Open(made->model)->lowered(0), &names);
    const std::set<std::string> made_up = Without(names, NamesOf(graph));
    ASSERT_GT(made_up.size(), 20u);
    for (const Renaming& renaming : Disguises(graph, made_up)) {
      auto again = MakeTrainable(Disguised(graph, renaming), options, DefaultEnvironment());
      ASSERT_TRUE(again.ok()) << again.status();
      const std::vector<double> losses = LossesOf(Reread(again->model));
      for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(losses[i], expected[i], 1e-5) << i;
    }
  }
}

TEST(Names, OfRaisedGraphs) {
  const Graph graph = GraphOf(kNetwork);
  const auto raise = [](const Model& model) {
    auto canonical = CanonicalGraph(model);
    EXPECT_TRUE(canonical.ok()) << canonical.status();
    return canonical.ok() ? *canonical : Graph{};
  };
  std::set<std::string> made_up =
      Without(NamesOf(raise(ModelFromGraph(graph, 8, "test"))), NamesOf(graph));
  for (int i = 0; i < 40; ++i) made_up.insert("_v_" + std::to_string(i));
  for (const Renaming& renaming : Disguises(graph, made_up)) {
    EXPECT_THAT(Verify(raise(Disguised(graph, renaming))), IsEmpty());
  }
}

TEST(Names, OfTheFileStandInMessages) {
  // Softmax is raised, so the wrong node is met on the way through the converter.
  auto graph = CanonicalGraph(
      TextModel("<ir_version: 8, opset_import: [\"\" : 12]> m (float[2, 3] x) => (float[3, 2] y) "
                "{ s = Softmax(x) turned = Transpose <perm = [0, 7]> (s) y = Neg(turned) }"));
  EXPECT_THAT(std::string(graph.status().message()),
              ::testing::HasSubstr("'-> turned' (Transpose)"));
}

// What `onward gradient` writes, differentiated again and again.
TEST(Names, OfGradientsOfGradients) {
  Graph graph = GraphOf(
      "m (float[2, 3] x) => (float[2, 3] y) <float[3, 3] W = {1, 2, 3, 4, 5, 6, 7, 8, 9}, float[3] "
      "g = {1, 1, 1}> { h = MatMul(x, W) n = LayerNormalization(h, g) y = Softmax(n) }");
  DifferentiateOptions options;
  options.operators = &DefaultEnvironment().operators();
  options.rules = &DefaultEnvironment().rules();
  for (int i = 0; i < 3; ++i) {
    auto gradients = Differentiate(graph, "y", {"x", "W"}, options);
    ASSERT_TRUE(gradients.ok()) << gradients.status();
    auto inlined = InlineOwnFunctions(gradients->graph, DefaultEnvironment());
    ASSERT_TRUE(inlined.ok()) << inlined.status();
    EXPECT_THAT(Verify(*inlined), IsEmpty()) << i;
    graph = *std::move(inlined);
  }
}

TEST(Names, OfGraphsThatAreCalled) {
  // 1.7 style: the algorithm uses the names that the second call would get.
  Model model =
      TextModel("m (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { h = Mul(x, W) y = Neg(h) }",
                {{R"(a (float[2] t) => (float[2] n) {
             h = ai.onnx.preview.training.GraphCall <graph_name = "m"> (t)
             call1__h = Neg(h)
             k = ai.onnx.preview.training.GraphCall <graph_name = "m"> (call1__h)
             d = Add(k, h)
             n = Add(W, d)
           })",
                  {{"W", "n"}}}});
  auto training = Open(model);
  ASSERT_TRUE(training->Step({{"t", Floats({1, 1})}}).ok());
  // h = -W, k = -(W * W), n = W - W*W - W
  EXPECT_THAT(ValueOf(*training, "W"), ElementsAre(-1, -4));
}

TEST(Names, TwoTensorsOfOneNameAreRefused) {
  const std::string text =
      Refusal(TextModel("m (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { y = Mul(x, W) }",
                        {{R"(a (float[2] t) => (float[2] n) <float[2] W = {5, 5}> {
             h = ai.onnx.preview.training.GraphCall <graph_name = "m"> (t)
             n = Add(W, h)
           })",
                          {{"W", "n"}}}}));
  EXPECT_THAT(text, ::testing::HasSubstr("initializer 'W'"));
}

// A copy of the forward pass takes the values along that bodies read from around them.
TEST(Names, CopiesRenameWhatBodiesCapture) {
  const Graph graph = GraphOf(
      R"(m (float[2] x, bool c) => (float[2] y) {
           d = Dropout(x)
           y = If (c) <then_branch = t () => (float[2] p) { p = Neg(d) },
                       else_branch = e () => (float[2] q) {
                         q = If (c) <then_branch = t2 () => (float[2] p2) { p2 = Exp(d) },
                                     else_branch = e2 () => (float[2] q2) { q2 = Identity(x) }>
                       }>
         })");
  const TrainingForward forward = CopyForward(graph, {"y"});
  ASSERT_THAT(forward.outputs, ElementsAre("y__train"));
  const Node& copy = forward.nodes.back();
  ASSERT_TRUE(copy.Is("If"));
  EXPECT_THAT(AllInputs(copy), UnorderedElementsAre("c", "d__train", "c", "x", "d__train"));
  Graph work = graph;
  work.nodes.insert(work.nodes.end(), forward.nodes.begin(), forward.nodes.end());
  EXPECT_THAT(Verify(work), IsEmpty());
}

}  // namespace onward::names_test
