// SPDX-License-Identifier: Apache-2.0
// A memory limit changes when values are computed, never what they are.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/support/text_model.h"

namespace onward::recompute_test {

constexpr int kLayers = 8;

// x -> 8 x (MatMul, Tanh, Dropout) -> sum; one step of descent by the weights.
Model DeepModel() {
  std::string body, weights, names, grads, updates;
  BindingTexts bindings;
  std::string value = "x";
  for (int i = 0; i < kLayers; ++i) {
    absl::StrAppend(&body, "p", i, " = MatMul(", value, ", W", i, ") t", i, " = Tanh(p", i, ") d",
                    i, " = Dropout <seed = ", i, "> (t", i, ", ratio, yes)\n");
    value = absl::StrCat("d", i);
    std::string numbers;
    for (int k = 0; k < 256; ++k)
      absl::StrAppend(&numbers, k == 0 ? "" : ", ", ((k * 37 + i * 11) % 41 - 20) * 0.02);
    absl::StrAppend(&weights, ", float[16, 16] W", i, " = {", numbers, "}");
    absl::StrAppend(&names, i == 0 ? "" : ", ", "\"W", i, "\"");
    absl::StrAppend(&grads, i == 0 ? "" : ", ", "G", i);
    absl::StrAppend(&updates, "S", i, " = Mul(G", i, ", rate) N", i, " = Sub(W", i, ", S", i,
                    ")\n");
    bindings.push_back({absl::StrCat("W", i), absl::StrCat("N", i)});
  }
  std::string inputs, outputs;
  for (int i = 0; i < kLayers; ++i) {
    absl::StrAppend(&inputs, i == 0 ? "" : ", ", "W", i);
    absl::StrAppend(&outputs, ", float[16, 16] N", i);
  }
  const std::string model =
      absl::StrCat("m (float[256, 16] x) => (float y) <float ratio = {0.25}, bool yes = {1}",
                   weights, "> {\n", body, "y = ReduceSum <keepdims = 0> (", value, ") }");
  const std::string algorithm =
      absl::StrCat("a () => (float loss", outputs, ") <float rate = {0.001}> { loss = Identity(y) ",
                   grads, " = ai.onnx.preview.training.Gradient <xs = [", names, "], y = \"y\"> (",
                   inputs, ")\n", updates, "}");
  return TextModel(model, {{algorithm, bindings}});
}

Tensor Input() {
  Tensor x(DType::kFloat, Shape{256, 16});
  for (int64_t i = 0; i < x.elements(); ++i)
    x.data<float>()[i] = static_cast<float>(i % 23 - 11) * 0.1f;
  return x;
}

struct Outcome {
  std::unique_ptr<const Environment> environment;
  size_t arena = 0, steps = 0;
  std::unique_ptr<TrainingModel> model;
};

Outcome ThreeSteps(size_t limit) {
  Outcome out;
  out.environment = *Environment::Make({.memory_limit = limit});
  out.model = Open(DeepModel(), *out.environment);
  const TensorMap feeds = {{"x", Input()}};
  auto executor = out.model->PrepareStep(0, feeds, {"loss"});
  EXPECT_TRUE(executor.ok()) << executor.status();
  if (!executor.ok()) return out;
  out.arena = (*executor)->plan().arena_bytes;
  out.steps = (*executor)->plan().compute.size();
  for (int i = 0; i < 3; ++i) {
    auto step = out.model->Step(feeds, {"loss"});
    EXPECT_TRUE(step.ok()) << step.status();
  }
  return out;
}

TEST(Recompute, GivesTheSameBits) {
  const Outcome free = ThreeSteps(0);
  for (const double share : {0.9, 0.75, 0.6}) {
    const Outcome tight =
        ThreeSteps(static_cast<size_t>(share * static_cast<double>(free.arena)) + 9000);
    EXPECT_LT(tight.arena, free.arena) << share;
    EXPECT_GT(tight.steps, free.steps) << share;
    EXPECT_TRUE(SameVariables(free.model->variables(), tight.model->variables())) << share;
  }
}

TEST(Recompute, SaysWhatWouldBeNeeded) {
  const std::unique_ptr<const Environment> small = *Environment::Make({.memory_limit = 20000});
  auto model = Open(DeepModel(), *small);
  auto step = model->Step({{"x", Input()}}, {"loss"});
  ASSERT_FALSE(step.ok());
  EXPECT_EQ(step.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(step.status().message().find("smaller batch"), std::string::npos) << step.status();
}

}  // namespace onward::recompute_test
