// SPDX-License-Identifier: Apache-2.0
// Functions in files: one body serves calls with different attributes, and a call is ours
// by domain, name and version.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "environment/environment.h"
#include "onnx/checker.h"
#include "onnx/onnx_pb.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"

namespace onward::functions_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kTwoWeights[] =
    "m (float[2] x) => (float[2] y) <float[2] A = {1, 2}, float[2] B = {3, 4}> "
    "{ h = Mul(x, A) y = Add(h, B) }";

Model Trainable(const std::string& optimizer) {
  AuthorOptions options;
  options.loss = {"mse", {}};
  options.optimizer = {optimizer, {{"weight_decay", 0.5}, {"lr", 0.1}}};
  options.train = {"A", "B"};
  auto made = MakeTrainable(TextModel(kTwoWeights), options, DefaultEnvironment());
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? made->model : Model();
}

// The second call of the step function gets another weight decay; its file says so.
Model WithOtherDecay(Model model, const std::string& function, float decay) {
  int calls = 0;
  for (auto& node : *model.proto().mutable_training_info(0)->mutable_algorithm()->mutable_node()) {
    if (node.op_type() != function || ++calls != 2) continue;
    for (auto& a : *node.mutable_attribute()) {
      if (a.name() == "weight_decay") a.set_f(decay);
    }
  }
  EXPECT_EQ(calls, 2);
  return model;
}

// As another runtime would: by the bodies that the file carries.
Model OfOtherVersion(Model model) {
  for (auto& o : *model.proto().mutable_opset_import()) {
    if (o.domain() == kOnwardDomain) o.set_version(kOnwardVersion + 1);
  }
  return model;
}

std::vector<double> Trained(const Model& model, int steps = 3) {
  auto training = Open(model);
  for (int i = 0; i < steps; ++i) {
    auto out = training->Step({{"x", Floats({1, -1})}, {"label", Floats({2, 2})}});
    EXPECT_TRUE(out.ok()) << out.status();
  }
  std::vector<double> values = ValueOf(*training, "A");
  for (double v : ValueOf(*training, "B")) values.push_back(v);
  return values;
}

TEST(FileFunctions, BodiesHeedTheAttributesOfEachCall) {
  for (const auto& [optimizer, function] :
       {std::pair{"sgd", "SgdStep"}, std::pair{"adamw", "AdamWStep"}}) {
    const Model model = Trainable(optimizer);
    const Model other = WithOtherDecay(model, function, 0.25f);
    EXPECT_EQ(Trained(model, 1)[0], Trained(other, 1)[0]) << optimizer;
    EXPECT_NE(Trained(model, 1)[2], Trained(other, 1)[2]) << optimizer;
    const std::vector<double> changed = Trained(other), by_body = Trained(OfOtherVersion(other));
    for (size_t i = 0; i < changed.size(); ++i)
      EXPECT_NEAR(by_body[i], changed[i], 1e-6) << optimizer << " " << i;
  }
}

TEST(FileFunctions, CarryReferencesAndNoValues) {
  const Model model = Trainable("adamw");
  ASSERT_EQ(model.proto().functions_size(), 1);
  const onnx::FunctionProto& f = model.proto().functions(0);
  EXPECT_THAT(std::vector<std::string>(f.attribute().begin(), f.attribute().end()),
              ElementsAre("alpha", "beta", "epsilon", "eps", "weight_decay"));
  std::set<std::string> referenced;
  for (const auto& node : f.node()) {
    for (const auto& a : node.attribute()) referenced.insert(a.ref_attr_name());
  }
  for (const std::string& name : f.attribute()) EXPECT_TRUE(referenced.contains(name)) << name;
  EXPECT_EQ(model.opsets().at(std::string(kOnwardDomain)), kOnwardVersion);
}

// Constant and Reshape, which bodies use, have new forms in several of these.
TEST(FileFunctions, PassOnnxsCheckerAtEveryOpset) {
  for (int opset = 18; opset <= kCanonicalOpset; ++opset) {
    AuthorOptions options;
    options.loss = {"mse", {}};
    options.train = {"A", "B"};
    const std::string header =
        absl::StrCat("<ir_version: 10, opset_import: [\"\" : ", opset, "]> ");
    auto made = MakeTrainable(TextModel(header + kTwoWeights), options, DefaultEnvironment());
    ASSERT_TRUE(made.ok()) << made.status();
    onnx::ModelProto written;
    ASSERT_TRUE(written.ParseFromString(Bytes(made->model)));
    EXPECT_GT(written.functions_size(), 0);
    EXPECT_NO_THROW(onnx::checker::check_model(written)) << opset;
    EXPECT_EQ(Trained(made->model).size(), 4u);
  }
}

// A file of another version may mean something else by the name: its body decides.
TEST(FileFunctions, AnotherVersionIsRunByItsBody) {
  const auto model = [](int version) {
    return TextModel(
        "<ir_version: 8, opset_import: [\"\" : 18, \"ai.onward\" : " + std::to_string(version) +
            "]> m (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { y = Mul(x, W) }"
            "<domain: \"ai.onward\", opset_import: [\"\" : 18]> SgdStep <weight_decay> (R, X, G) "
            "=> (N) { N = Add(X, G) }",
        {{"a () => (float[2] n) <float R = {0.5}> { n = ai.onward.SgdStep <weight_decay = 0.0> (R, "
          "W, x) }",
          {{"W", "n"}}}});
  };
  for (const int version : {kOnwardVersion - 1, kOnwardVersion + 1}) {
    auto training = Open(model(version));
    ASSERT_TRUE(training->Step({{"x", Floats({1, 1})}}).ok());
    EXPECT_THAT(ValueOf(*training, "W"), ElementsAre(2, 3)) << version;
  }
  auto training = Open(model(kOnwardVersion));
  ASSERT_TRUE(training->Step({{"x", Floats({1, 1})}}).ok());
  EXPECT_THAT(ValueOf(*training, "W"), ElementsAre(0.5, 1.5));
}

TEST(FileFunctions, AreFoundByDomainToo) {
  EXPECT_NE(DefaultEnvironment().functions().Find("SgdStep", kOnwardDomain), nullptr);
  EXPECT_EQ(DefaultEnvironment().functions().Find("SgdStep", kTrainingDomain), nullptr);
  EXPECT_NE(DefaultEnvironment().functions().Find("Adam", kTrainingDomain), nullptr);
  EXPECT_EQ(DefaultEnvironment().functions().Find("Adam", kOnwardDomain), nullptr);
  const std::string text = Refusal(TextModel(
      "m (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { y = Mul(x, W) }",
      {{"a () => (float[2] n) <float R = {0.5}> { n = ai.onnx.preview.training.SgdStep (R, W, x) }",
        {{"W", "n"}}}}));
  EXPECT_THAT(text, HasSubstr("SgdStep"));
}

// No output of the second entry is wanted; its weight is still written in place.
TEST(Step, WeightsOfAnEntryWithoutOutputsAreUpdatedInPlace) {
  auto training = Open(TextModel(
      "<ir_version: 8, opset_import: [\"\" : 18, \"ai.onward\" : 2]>"
      "m (float[2] x) => (float[2] y) <float[2] A = {1, 2}, float[2] B = {3, 4}> "
      "{ h = Mul(x, A) y = Add(h, B) }",
      {{"a () => (float[2] n, float s) { n = Sub(A, x) s = ReduceSum <keepdims = 0> (y) }",
        {{"A", "n"}}},
       {"b () => (float[2] k) <float R = {1}> { k = ai.onward.SgdStep <weight_decay = 0.0> (R, B, "
        "x) }",
        {{"B", "k"}}}}));
  const TensorMap feeds = {{"x", Floats({1, 1})}};
  auto executor = training->PrepareStep(1, feeds, {"s"});
  ASSERT_TRUE(executor.ok()) << executor.status();
  EXPECT_TRUE((*executor)->plan().outputs.empty());
  EXPECT_TRUE((*executor)->plan().copies.empty());
  EXPECT_EQ((*executor)->plan().commit.size(), 1u);
  ASSERT_TRUE(training->Step(feeds, {"s"}).ok());
  EXPECT_THAT(ValueOf(*training, "B"), ElementsAre(2, 3));
}

}  // namespace onward::functions_test
