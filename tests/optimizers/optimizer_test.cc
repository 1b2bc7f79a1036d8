// SPDX-License-Identifier: Apache-2.0
#include "optimizers/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace onward::optimizer_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string ErrorOf(const char* text) {
  const absl::StatusOr<OptimizerSpec> spec = ParseOptimizer(text);
  EXPECT_FALSE(spec.ok()) << text;
  return std::string(spec.status().message());
}

OptimizerSpec Parsed(const char* text) {
  const absl::StatusOr<OptimizerSpec> spec = ParseOptimizer(text);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? *spec : OptimizerSpec{};
}

// The update of two variables, "a" and "b", with states "a_0", "a_1", ...
struct Update {
  Graph graph;
  absl::Status status;
  std::vector<std::vector<std::string>> updated;
};

Update Build(const char* text, DType dtype = DType::kFloat, DType lr_dtype = DType::kFloat) {
  Update update;
  const OptimizerSpec spec = Parsed(text);
  GraphBuilder b(&update.graph, nullptr);
  const Expr lr = b.Input("R", ValueType::Of(lr_dtype, {}));
  const Expr step = b.Input("T", ValueType::Of(DType::kInt64, {}));
  std::vector<Variable> variables;
  for (const std::string name : {"a", "b"}) {
    const ValueType type = ValueType::Of(dtype, {2, 3});
    Variable v = {b.Input(name, type), b.Input(absl::StrCat(name, "_grad"), type), {}};
    int k = 0;
    for (const StateTensor& s : States(spec, {2, 3})) {
      v.states.push_back(b.Input(absl::StrCat(name, "_", k++), ValueType::Of(dtype, *s.shape)));
    }
    variables.push_back(std::move(v));
  }
  std::vector<std::vector<Expr>> updated;
  update.status = BuildUpdate(b, spec, lr, step, variables, &updated);
  for (const std::vector<Expr>& news : updated) {
    std::vector<std::string>& names = update.updated.emplace_back();
    for (const Expr& e : news) names.push_back(e.name());
  }
  return update;
}

TEST(ParseOptimizer, KeepsWhatIsGivenAndKnowsDefaults) {
  const OptimizerSpec spec = Parsed("adamw:lr=5e-4,weight_decay=0.1");
  EXPECT_EQ(spec.name, "adamw");
  EXPECT_DOUBLE_EQ(OptionOf(spec, "lr"), 5e-4);
  EXPECT_DOUBLE_EQ(OptionOf(spec, "weight_decay"), 0.1);
  EXPECT_DOUBLE_EQ(OptionOf(spec, "beta2"), 0.999);
  EXPECT_DOUBLE_EQ(OptionOf(Parsed("adam"), "lr"), 1e-3);
  EXPECT_DOUBLE_EQ(OptionOf(Parsed("adam"), "weight_decay"), 0);
  EXPECT_DOUBLE_EQ(OptionOf(Parsed("sgd"), "lr"), 1e-2);
  EXPECT_DOUBLE_EQ(OptionOf(Parsed("momentum"), "momentum"), 0.9);
}

TEST(ParseOptimizer, SuggestsTheNearest) {
  EXPECT_THAT(ErrorOf("adma"), HasSubstr("did you mean 'adam'?"));
  EXPECT_THAT(ErrorOf("tiger"), HasSubstr("valid: adadelta, adafactor, adagrad, adam, adamax, "));
  EXPECT_THAT(ErrorOf("adam:wieght_decay=1"), HasSubstr("did you mean 'weight_decay'?"));
  EXPECT_THAT(ErrorOf("sgd:beta1=0.9"), HasSubstr("unknown option of optimizer 'sgd' 'beta1'"));
}

TEST(ParseOptimizer, RefusesBadValues) {
  EXPECT_THAT(ErrorOf("sgd:lr=-0.1"), HasSubstr("a number >= 0"));
  EXPECT_THAT(ErrorOf("sgd:lr=nan"), HasSubstr("a number >= 0"));
  EXPECT_THAT(ErrorOf("sgd:lr=inf"), HasSubstr("a number >= 0"));
  EXPECT_THAT(ErrorOf("sgd:lr=fast"), HasSubstr("got 'fast'"));
  EXPECT_THAT(ErrorOf("adam:beta1=1"), HasSubstr("a number in [0, 1)"));
  EXPECT_THAT(ErrorOf("adamw:eps=0"), HasSubstr("a number > 0"));
  EXPECT_THAT(ErrorOf("adamw:weight_decay=-1"), HasSubstr("a number >= 0"));
  EXPECT_THAT(ErrorOf("sgd:nesterov=true"), HasSubstr("nesterov needs momentum > 0"));
  EXPECT_THAT(ErrorOf("sgd:dampening=0.1"), HasSubstr("dampening needs momentum > 0"));
  EXPECT_DOUBLE_EQ(OptionOf(Parsed("sgd:lr=0"), "lr"), 0);
}

TEST(ParseOptimizer, TakesListsAndWords) {
  const OptimizerSpec adam = Parsed("adam:betas=0.5/0.75");
  EXPECT_DOUBLE_EQ(OptionOf(adam, "beta1"), 0.5);
  EXPECT_DOUBLE_EQ(OptionOf(adam, "beta2"), 0.75);
  EXPECT_DOUBLE_EQ(OptionOf(Parsed("muon:adjust_lr_fn=match_rms_adamw"), "adjust_lr_fn"), 1);
  EXPECT_DOUBLE_EQ(OptionOf(Parsed("muon"), "nesterov"), 1);
  EXPECT_THAT(ErrorOf("adam:betas=0.5"), HasSubstr("2 numbers with '/' between them"));
  EXPECT_THAT(ErrorOf("adam:betas=0.5/0.9,beta1=0.1"), HasSubstr("which is given too"));
  EXPECT_THAT(ErrorOf("adam:betas=0.5/1"), HasSubstr("'beta2' has to be a number in [0, 1)"));
  EXPECT_THAT(ErrorOf("muon:adjust_lr_fn=1"), HasSubstr("one of original, match_rms_adamw"));
  EXPECT_THAT(ErrorOf("rprop:step_sizes=2/1"), HasSubstr("step_size1 is the shortest step"));
  EXPECT_THAT(ErrorOf("adamw:amsgrad=1,epsilon=1e-6"), HasSubstr("takes eps, not epsilon"));
}

TEST(States, MayHaveShapesOfTheirOwn) {
  const std::vector<StateTensor> matrix = States(Parsed("adafactor"), {4, 2, 3});
  ASSERT_EQ(matrix.size(), 2u);
  EXPECT_EQ(*matrix[0].shape, Shape({4, 2, 1}));
  EXPECT_EQ(*matrix[1].shape, Shape({4, 1, 3}));
  EXPECT_EQ(States(Parsed("adafactor"), {3}).size(), 1u);
  EXPECT_EQ(States(Parsed("muon"), {4, 2}).size(), 1u);
  EXPECT_EQ(States(Parsed("muon"), {4}).size(), 2u);
  EXPECT_EQ(*States(Parsed("nadam"), {4})[2].shape, Shape({}));
}

TEST(BuildUpdate, MaximizeTurnsEveryGradient) {
  for (const std::string& name : OptimizerNames()) {
    const Update update = Build((name + ":maximize=1").c_str());
    ASSERT_TRUE(update.status.ok()) << update.status;
    EXPECT_TRUE(update.graph.nodes[0].Is("Neg")) << name;
  }
}

TEST(States, ArePerOptimizer) {
  EXPECT_THAT(States(Parsed("sgd"), {2, 3}), IsEmpty());
  ASSERT_EQ(States(Parsed("sgd:momentum=0.9"), {2, 3}).size(), 1u);
  EXPECT_EQ(States(Parsed("momentum"), {2, 3})[0].suffix, "__momentum");
  EXPECT_EQ(States(Parsed("adagrad:initial_accumulator_value=0.1"), {2, 3})[0].initial, 0.1);
  ASSERT_EQ(States(Parsed("adamw"), {2, 3}).size(), 2u);
  EXPECT_EQ(States(Parsed("adam"), {2, 3})[1].suffix, "__second_moment");
}

TEST(FirstStep, IsOneWhereBiasIsCorrected) {
  EXPECT_EQ(FirstStep(Parsed("adam")), 1);
  EXPECT_EQ(FirstStep(Parsed("adamw")), 1);
  EXPECT_EQ(FirstStep(Parsed("momentum")), 0);
  EXPECT_EQ(FirstStep(Parsed("adagrad")), 0);
  EXPECT_EQ(FirstStep(Parsed("sgd")), 0);
}

TEST(BuildUpdate, CallsTheStandardOnceForAllVariables) {
  const Update update = Build("adam:beta1=0.8,weight_decay=0.5");
  ASSERT_TRUE(update.status.ok()) << update.status;
  ASSERT_EQ(update.graph.nodes.size(), 1u);
  const Node& node = update.graph.nodes[0];
  EXPECT_TRUE(node.Is("Adam", kTrainingDomain));
  EXPECT_THAT(node.inputs,
              ElementsAre("R", "T", "a", "b", "a_grad", "b_grad", "a_0", "b_0", "a_1", "b_1"));
  ASSERT_EQ(node.outputs.size(), 6u);
  EXPECT_THAT(update.updated[0], ElementsAre(node.outputs[0], node.outputs[2], node.outputs[4]));
  EXPECT_THAT(update.updated[1], ElementsAre(node.outputs[1], node.outputs[3], node.outputs[5]));
  EXPECT_FLOAT_EQ(node.Float("alpha", 0), 0.8f);
  EXPECT_FLOAT_EQ(node.Float("beta", 0), 0.999f);
  EXPECT_FLOAT_EQ(node.Float("epsilon", 0), 1e-8f);
  EXPECT_FLOAT_EQ(node.Float("norm_coefficient", 0), 0.5f);
  EXPECT_FLOAT_EQ(node.Float("norm_coefficient_post", 1), 0);
}

TEST(BuildUpdate, MomentumHasAllItsRequiredAttributes) {
  const Update update = Build("sgd:momentum=0.9,dampening=0.1,weight_decay=1e-4");
  ASSERT_TRUE(update.status.ok()) << update.status;
  const Node& node = update.graph.nodes.back();
  EXPECT_TRUE(node.Is("Momentum", kTrainingDomain));
  EXPECT_FLOAT_EQ(node.Float("alpha", 0), 0.9f);
  EXPECT_FLOAT_EQ(node.Float("beta", 0), 0.9f);
  EXPECT_FLOAT_EQ(node.Float("norm_coefficient", 0), 1e-4f);
  EXPECT_EQ(node.String("mode", ""), "standard");
  EXPECT_EQ(Build("sgd:momentum=0.9,nesterov=1").graph.nodes.back().String("mode", ""), "nesterov");
  EXPECT_EQ(Build("nesterov").graph.nodes.back().String("mode", ""), "nesterov");
  EXPECT_EQ(Build("momentum").graph.nodes.back().Float("beta", 0), 1);
}

TEST(BuildUpdate, AdagradMapsItsOptions) {
  const Update update = Build("adagrad:lr_decay=0.01,eps=1e-7");
  ASSERT_TRUE(update.status.ok()) << update.status;
  const Node& node = update.graph.nodes.back();
  EXPECT_TRUE(node.Is("Adagrad", kTrainingDomain));
  EXPECT_FLOAT_EQ(node.Float("decay_factor", 0), 0.01f);
  EXPECT_FLOAT_EQ(node.Float("epsilon", 0), 1e-7f);
  EXPECT_EQ(node.outputs.size(), 4u);
}

TEST(BuildUpdate, PlainSgdAndAdamWCallOnwardsFunctions) {
  const Update sgd = Build("sgd:weight_decay=0.1");
  ASSERT_TRUE(sgd.status.ok()) << sgd.status;
  ASSERT_EQ(sgd.graph.nodes.size(), 2u);
  EXPECT_TRUE(sgd.graph.nodes[0].Is("SgdStep", kOnwardDomain));
  EXPECT_THAT(sgd.graph.nodes[0].inputs, ElementsAre("R", "a", "a_grad"));
  EXPECT_FLOAT_EQ(sgd.graph.nodes[0].Float("weight_decay", 0), 0.1f);

  const Update adamw = Build("adamw");
  ASSERT_TRUE(adamw.status.ok()) << adamw.status;
  ASSERT_EQ(adamw.graph.nodes.size(), 2u);
  EXPECT_TRUE(adamw.graph.nodes[1].Is("AdamWStep", kOnwardDomain));
  EXPECT_THAT(adamw.graph.nodes[1].inputs, ElementsAre("R", "T", "b", "b_grad", "b_0", "b_1"));
  EXPECT_EQ(adamw.updated[1].size(), 3u);
}

TEST(BuildUpdate, CastsTheRateToTheVariablesType) {
  const Update update = Build("adamw", DType::kDouble);
  ASSERT_TRUE(update.status.ok()) << update.status;
  EXPECT_TRUE(update.graph.nodes[0].Is("Cast"));
}

TEST(BuildUpdate, RefusesHalvesWhereTheStandardDoes) {
  const Update update = Build("adam", DType::kFloat16);
  EXPECT_THAT(std::string(update.status.message()), HasSubstr("'a' is float16: use adamw"));
  EXPECT_TRUE(Build("adamw", DType::kFloat16, DType::kFloat16).status.ok());
}

TEST(BuildUpdate, RefusesInvalidSpecsAndNothingToDo) {
  Graph graph;
  GraphBuilder b(&graph, nullptr);
  const Expr lr = b.Input("R", ValueType::Of(DType::kFloat, {}));
  std::vector<std::vector<Expr>> updated;
  EXPECT_FALSE(BuildUpdate(b, {"sgd", {}}, lr, lr, {}, &updated).ok());
  EXPECT_FALSE(BuildUpdate(b, {"adm", {}}, lr, lr, {}, &updated).ok());
  const Variable v = {b.Input("x", ValueType::Of(DType::kFloat, {})), lr, {}};
  EXPECT_FALSE(BuildUpdate(b, {"sgd", {{"lr", -1}}}, lr, lr, {v}, &updated).ok());
}

TEST(OptimizerFunctions, BodiesAreStandardOperators) {
  FunctionLibrary library;
  RegisterOptimizerFunctions(library);
  for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kFloat16}) {
    for (const char* text : {"sgd:weight_decay=0.1", "adamw"}) {
      const Update update = Build(text, dtype, dtype);
      ASSERT_TRUE(update.status.ok()) << update.status;
      const Node& call = update.graph.nodes.back();
      std::vector<InputFact> facts;
      for (const std::string& input : call.inputs)
        facts.push_back({update.graph.TypeOf(input), nullptr});
      const absl::StatusOr<Graph> body = library.Instantiate(call, facts, nullptr, 18);
      ASSERT_TRUE(body.ok()) << body.status();
      EXPECT_EQ(body->inputs.size(), call.inputs.size());
      EXPECT_EQ(body->outputs.size(), call.outputs.size());
      for (const Node& node : body->nodes) EXPECT_EQ(node.domain, "") << node.Describe();
    }
  }
  EXPECT_THAT(library.Find("AdamWStep")->output_like, ElementsAre(2, 4, 5));
  EXPECT_THAT(library.Find("SgdStep")->output_like, ElementsAre(1));
}

}  // namespace onward::optimizer_test
