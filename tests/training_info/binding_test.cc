// SPDX-License-Identifier: Apache-2.0
// docs/training-info.md: bindings, and what is refused of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "environment/environment.h"
#include "onnx/onnx_pb.h"
#include "tests/support/text_model.h"
#include "training_info/import.h"
#include "training_info/validate.h"

namespace onward::binding_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kScale[] =
    "m (float[2] x) => (float[2] y) <float[2] W = {1, 2}, float[2] B = {0, 0}> { h = Mul(x, W) y = "
    "Add(h, B) }";
const EntryText kAddInput = {"a () => (float[2] n) { n = Add(W, x) }", {{"W", "n"}}};

std::vector<Finding> Findings(const Model& model) {
  auto findings = CheckModel(model, DefaultEnvironment());
  EXPECT_TRUE(findings.ok()) << findings.status();
  return findings.ok() ? *findings : std::vector<Finding>{};
}

// The model is refused with exactly one finding, of this rule, which says `what`.
void ExpectRefused(const std::vector<EntryText>& entries, const std::string& rule,
                   const std::string& what) {
  const Model model = TextModel(kScale, entries);
  const std::vector<Finding> findings = Findings(model);
  ASSERT_EQ(findings.size(), 1u) << FindingsToStatus(findings);
  EXPECT_EQ(findings[0].rule, rule);
  EXPECT_THAT(findings[0].ToString(), HasSubstr(what));
  EXPECT_NE(findings[0].fix, "");
  EXPECT_THAT(Refusal(model), HasSubstr(findings[0].ToString()));
}

TEST(TrainingInfo, RefusesVariableUpdatedTwice) {
  ExpectRefused({kAddInput, {"b () => (float[2] k) { k = Sub(W, x) }", {{"W", "k"}}}},
                "duplicate-key",
                "training_info[1].update_binding: assigns 'W' again (first in training_info[0])");
  ExpectRefused({{kAddInput.algorithm, {{"W", "n"}, {"W", "n"}}}}, "duplicate-key",
                "assigns 'W' again");
  ExpectRefused({{kAddInput.algorithm,
                  {},
                  "i () => (float[2] w) <float[2] w = {5, 6}> {}",
                  {{"W", "w"}, {"W", "w"}}}},
                "duplicate-key", "training_info[0].initialization_binding: assigns 'W' twice");
}

TEST(TrainingInfo, RefusesInitializationOfAnotherEntrysVariable) {
  const char* initialization = "i () => (float[2] w) <float[2] w = {5, 6}> {}";
  const EntryText owner = {"b () => (float[2] k) <float[2] S = {0, 0}> { k = Add(S, x) }",
                           {{"S", "k"}}};
  ExpectRefused({owner, {kAddInput.algorithm, kAddInput.update, initialization, {{"S", "w"}}}},
                "unknown-key",
                "training_info[1].initialization_binding: 'S' is not an initializer of the graph "
                "or of this entry's");
  // In its own entry it may be.
  EntryText own = owner;
  own.initialization = initialization;
  own.initialize = {{"S", "w"}};
  auto model = Open(TextModel(kScale, {own}));
  ASSERT_TRUE(model->Initialize().ok());
  EXPECT_THAT(ValueOf(*model, "S"), ElementsAre(5, 6));
}

TEST(TrainingInfo, RefusesUnknownUpdateKey) {
  for (const char* key : {"nothing", "x", "h", "n", ""}) {
    ExpectRefused({{kAddInput.algorithm, {{key, "n"}}}}, "unknown-key",
                  "is not an initializer of the graph");
  }
}

// Of any algorithm: another entry may assign it.
TEST(TrainingInfo, UpdateKeyOfAnotherEntry) {
  auto model = Open(TextModel(
      kScale, {{"a () => (float[2] n) <float[2] S = {3, 4}> { n = Add(W, S) }", {{"W", "n"}}},
               {"b () => (float[2] k) { k = Neg(x) }", {{"S", "k"}}}}));
  ASSERT_TRUE(model->Step({{"x", Floats({1, 1})}}).ok());
  EXPECT_THAT(ValueOf(*model, "W"), ElementsAre(4, 6));
  EXPECT_THAT(ValueOf(*model, "S"), ElementsAre(-1, -1));
  ASSERT_TRUE(model->Step({{"x", Floats({1, 1})}}).ok());
  EXPECT_THAT(ValueOf(*model, "W"), ElementsAre(3, 5));
}

TEST(TrainingInfo, UpdateValueFromInferenceOutput) {
  auto model = Open(TextModel(
      R"(m (float[2, 1] x) => (float[2, 1] y, float[1] mean1, float[1] var1)
         <float[1] s = {1}, float[1] b = {0}, float[1] mean = {0}, float[1] var = {1}> {
           y, mean1, var1 = BatchNormalization <training_mode = 1, momentum = 0.5> (x, s, b, mean, var)
         })",
      {{"", {{"mean", "mean1"}, {"var", "var1"}}}}));
  ASSERT_TRUE(model->Step({{"x", Floats({2, 1}, {2, 6})}}).ok());
  EXPECT_THAT(ValueOf(*model, "mean"), ElementsAre(2));
  EXPECT_THAT(ValueOf(*model, "var"), ElementsAre(2.5));
}

TEST(TrainingInfo, RefusesValueThatIsNoOutput) {
  for (const char* value : {"h", "t", "x", "nothing", ""}) {
    ExpectRefused({{"a () => (float[2] n) { t = Add(W, x) n = Neg(t) }", {{"W", value}}}},
                  "unknown-value", "is not an output of algorithm or of the model");
  }
}

TEST(TrainingInfo, RefusesUnknownInitializationValue) {
  for (const char* value : {"v", "n", "y"}) {
    ExpectRefused({{kAddInput.algorithm,
                    kAddInput.update,
                    "i () => (float[2] w) <float[2] v = {5, 6}> { w = Neg(v) }",
                    {{"W", value}}}},
                  "unknown-value", "is not an output of initialization");
  }
}

TEST(TrainingInfo, RefusesInitializationInputs) {
  ExpectRefused({{kAddInput.algorithm,
                  kAddInput.update,
                  "i (float[2] v) => (float[2] w) { w = Neg(v) }",
                  {{"W", "w"}}}},
                "initialization-input",
                "has the input 'v'; an initialization graph takes no inputs");
}

TEST(TrainingInfo, InitializationStandsAlone) {
  for (const char* initialization :
       {"i () => (float[2] w) { w = Neg(W) }", "i () => (float[2] w) { w = Neg(n) }"}) {
    ExpectRefused({{kAddInput.algorithm, kAddInput.update, initialization, {{"W", "w"}}}},
                  "undefined-value", "training_info[0].initialization");
  }
}

TEST(TrainingInfo, RefusesChangeOfTypeOrShape) {
  for (const char* algorithm :
       {"a () => (float[3] n) <float[3] c = {1, 2, 3}> { n = Neg(c) }",
        "a () => (float[2, 1] n) <int64[1] one = {1}> { n = Unsqueeze(x, one) }",
        "a () => (double[2] n) { n = Cast <to = 11> (x) }"}) {
    ExpectRefused({{algorithm, {{"W", "n"}}}}, "type-mismatch", "'W' is float[2], but 'n' is ");
  }
  ExpectRefused({{kAddInput.algorithm,
                  kAddInput.update,
                  "i () => (float[1] w) <float[1] w = {5}> {}",
                  {{"W", "w"}}}},
                "type-mismatch",
                "training_info[0].initialization_binding: 'W' is float[2], but 'w' is float[1]");
  // Known only in the step.
  auto model = Open(
      TextModel(kScale, {{"a (int64[k] at) => (float[k] n) { n = Gather(x, at) }", {{"W", "n"}}}}));
  auto refused = model->Step({{"x", Floats({1, 1})}, {"at", Int64s({0, 1, 0})}});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("'W'"));
  EXPECT_THAT(ValueOf(*model, "W"), ElementsAre(1, 2));
  EXPECT_TRUE(model->Step({{"x", Floats({1, 1})}, {"at", Int64s({0, 1})}}).ok());
}

TEST(TrainingInfo, RefusesSparseVariable) {
  Model model = TextModel(kScale, {kAddInput});
  onnx::GraphProto* graph = model.proto().mutable_graph();
  ASSERT_EQ(graph->initializer(0).name(), "W");
  graph->mutable_initializer()->DeleteSubrange(0, 1);
  onnx::SparseTensorProto* sparse = graph->add_sparse_initializer();
  sparse->add_dims(2);
  sparse->mutable_values()->set_name("W");
  sparse->mutable_values()->set_data_type(onnx::TensorProto::FLOAT);
  sparse->mutable_values()->add_dims(1);
  sparse->mutable_values()->add_float_data(5);
  sparse->mutable_indices()->set_data_type(onnx::TensorProto::INT64);
  sparse->mutable_indices()->add_dims(1);
  sparse->mutable_indices()->add_int64_data(1);
  EXPECT_THAT(Refusal(model),
              HasSubstr("[sparse-variable] training_info[0].update_binding: 'W' is a sparse"));
  // As a constant it is fine.
  model.proto().mutable_training_info(0)->mutable_update_binding(0)->set_key("B");
  auto training = Open(model);
  ASSERT_TRUE(training->Step({{"x", Floats({1, 1})}}).ok());
  EXPECT_THAT(ValueOf(*training, "B"), ElementsAre(1, 6));
}

TEST(TrainingInfo, RefusesStringVariable) {
  EXPECT_THAT(
      Refusal(TextModel("m (float[1] x) => (float[1] y) <string[1] s = {\"a\"}> { y = Neg(x) }",
                        {{"a () => (string[1] n) { n = Identity(s) }", {{"s", "n"}}}})),
      HasSubstr("[string-variable]"));
}

TEST(TrainingInfo, RefusesAmbiguousInitializers) {
  const EntryText one = {"a () => (float[2] n) <float[2] S = {1, 1}> { n = Add(W, S) }",
                         {{"W", "n"}}};
  ExpectRefused(
      {one, {"b () => (float[2] k) <float[2] S = {1, 2}> { k = Add(B, S) }", {{"B", "k"}}}},
      "ambiguous-initializer",
      "training_info[1].algorithm: initializer 'S' exists in training_info[0] too");
  ExpectRefused(
      {one,
       {"b () => (float[2] k) <float[2] S = {1, 1}> { k = Add(B, S) }", {{"B", "k"}, {"S", "k"}}}},
      "ambiguous-initializer", "initializer 'S'");
  // Equal and never assigned.
  auto model = Open(TextModel(
      kScale,
      {one, {"b () => (float[2] k) <float[2] S = {1, 1}> { k = Add(B, S) }", {{"B", "k"}}}}));
  ASSERT_TRUE(model->Step({{"x", Floats({0, 0})}}).ok());
  EXPECT_THAT(ValueOf(*model, "B"), ElementsAre(1, 1));
}

TEST(TrainingInfo, UnboundInitializersNeverChange) {
  auto model = Open(TextModel(kScale, {kAddInput}));
  EXPECT_EQ(model->variables().size(), 1u);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(model->Step({{"x", Floats({1, 1})}}).ok());
  const Model exported = *model->Export();
  auto spec = ImportTraining(exported);
  ASSERT_TRUE(spec.ok());
  EXPECT_THAT(Values(spec->inference.initializers.at("B")), ElementsAre(0, 0));
  EXPECT_THAT(Values(spec->inference.initializers.at("W")), ElementsAre(4, 5));
}

TEST(TrainingInfo, RefusesFeedingAVariable) {
  auto model = Open(TextModel(
      "m (float[2] x, float[2] W = {1, 2}) => (float[2] y) { y = Mul(x, W) }", {kAddInput}));
  ASSERT_EQ(model->StepInputs().size(), 1u);
  EXPECT_EQ(model->StepInputs()[0].name, "x");
  auto refused = model->Step({{"x", Floats({1, 1})}, {"W", Floats({0, 0})}});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("'W' is a state variable"));
  ASSERT_TRUE(model->Step({{"x", Floats({1, 1})}}).ok());
  EXPECT_THAT(ValueOf(*model, "W"), ElementsAre(2, 3));
}

TEST(TrainingInfo, ReportsAllFindingsAtOnce) {
  const Model model = TextModel(
      kScale,
      {{"a () => (float[2] n, float[3] m3) <float[3] c = {1, 2, 3}> { n = Add(W, x) m3 = Neg(c) }",
        {{"W", "n"}, {"nothing", "n"}, {"B", "m3"}},
        "i (float[2] v) => (float[2] w) { w = Neg(v) }",
        {{"W", "absent"}}},
       {"b () => (float[2] k) { k = NoSuchOperator(x) }", {{"W", "k"}}}});
  std::vector<std::string> rules;
  for (const Finding& f : Findings(model)) {
    rules.push_back(f.rule);
    EXPECT_NE(f.place, "");
    EXPECT_NE(f.what, "");
    EXPECT_NE(f.fix, "") << f.ToString();
  }
  for (const char* rule : {"unknown-key", "type-mismatch", "initialization-input", "unknown-value",
                           "unknown-operator", "duplicate-key"}) {
    EXPECT_THAT(rules, Contains(rule));
  }
}

TEST(TrainingInfo, ChecksIrVersion) {
  Model model = TextModel(kScale, {kAddInput});
  EXPECT_THAT(Findings(model), IsEmpty());
  model.set_ir_version(6);
  const std::vector<Finding> findings = Findings(model);
  // Each thing that a later version brought: opset 18, the training domain, training_info.
  ASSERT_EQ(findings.size(), 3u) << FindingsToStatus(findings);
  for (const Finding& finding : findings) {
    EXPECT_EQ(finding.rule, "ir-version");
    EXPECT_TRUE(IsRemark(finding));
  }
  EXPECT_THAT(findings[2].what, HasSubstr("training_info came with IR version 7, the file says 6"));
}

}  // namespace onward::binding_test
