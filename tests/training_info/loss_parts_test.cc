// SPDX-License-Identifier: Apache-2.0
// What a file says of its losses, and the losses as evaluation has them.
#include "training_info/loss_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/runtime/session.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"
#include "training_info/import.h"
#include "training_info/lower.h"

namespace onward::loss_parts_test {

using ::testing::ElementsAre;

// z is dropped out of in training.
constexpr char kModel[] = R"(
  m (float[N, 2] x) => (float[N, 2] y, float[N, 2] z)
  <float[2, 2] W = {1, 2, 3, 4}, float[2, 2] V = {0.5, -1, 1, 0.25}, float ratio = {0.5}> {
    y = MatMul(x, W)
    p = MatMul(x, V)
    z, mask = Dropout(p, ratio)
  })";

Model Made(const std::vector<std::string>& losses) {
  AuthorOptions options;
  for (const std::string& loss : losses) options.losses.push_back(ParseLossTerm(loss).value());
  auto made = MakeTrainable(TextModel(kModel), options, DefaultEnvironment());
  EXPECT_TRUE(made.ok()) << made.status();
  return Reread(made->model);
}

TEST(StoredLosses, ReadBackWhatWasWritten) {
  const LossParts losses = StoredLosses(Made({"mse@y", "0.25*l1@z", "cosine@y,z"})).value();
  EXPECT_EQ(losses.sum, "loss");
  ASSERT_EQ(losses.parts.size(), 3);
  EXPECT_EQ(LossTermText(losses.parts[1].term), "0.25*l1@z");
  EXPECT_THAT(losses.parts[0].compared, ElementsAre("y"));
  EXPECT_NE(losses.parts[1].compared[0], "z");
  EXPECT_THAT(losses.parts[1].labels, ElementsAre("label_z"));
  EXPECT_THAT(losses.parts[2].term.outputs, ElementsAre("y", "z"));
}

TEST(StoredLosses, OneLossHasTheKeysOfBefore) {
  const Model model = Made({"mse@y"});
  EXPECT_EQ(model.Metadata("onward.loss_1"), "");
  const LossParts losses = StoredLosses(model).value();
  ASSERT_EQ(losses.parts.size(), 1);
  EXPECT_EQ(losses.parts[0].value, "loss");
  EXPECT_THAT(losses.parts[0].labels, ElementsAre("label"));
  EXPECT_FALSE(StoredLosses(TextModel(kModel)).has_value());
}

TEST(LossGraph, ComparesTheOutputsOfInference) {
  const Model model = Made({"mse@y", "0.25*l1@z"});
  LossParts losses = StoredLosses(model).value();
  const auto graph = LossGraph(ImportTraining(model).value(), &losses);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(losses.parts[1].compared, ElementsAre("z"));
  auto lowered = Lower(*graph, DefaultEnvironment());
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  for (const Node& node : lowered->nodes) EXPECT_FALSE(node.Is("AdamWStep", kOnwardDomain));
  Session session(*std::move(lowered), DefaultEnvironment().compile_options());
  const Tensor x = Floats({1, 2}, {1, 2});
  // y = [7, 10], z = [2.5, -0.5]
  auto out = session.Run(
      {{"x", x}, {"label", Floats({1, 2}, {6, 8})}, {"label_z", Floats({1, 2}, {0.5, 0.5})}},
      nullptr);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_FLOAT_EQ(static_cast<float>(Values(out->at(losses.parts[0].value))[0]), 2.5f);
  EXPECT_FLOAT_EQ(static_cast<float>(Values(out->at(losses.parts[1].value))[0]), 1.5f);
  EXPECT_FLOAT_EQ(static_cast<float>(Values(out->at("loss"))[0]), 2.875f);
}

TEST(LossGraph, RefusesMetadataThatNameNothing) {
  Model model = Made({"mse@y", "l1@z"});
  model.SetMetadata("onward.loss_2.value", "nowhere");
  LossParts losses = StoredLosses(model).value();
  EXPECT_FALSE(LossGraph(ImportTraining(model).value(), &losses).ok());
  model.SetMetadata("onward.loss_2.output_1", "");
  EXPECT_FALSE(StoredLosses(model).has_value());
}

}  // namespace onward::loss_parts_test
