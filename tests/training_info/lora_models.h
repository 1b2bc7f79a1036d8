// SPDX-License-Identifier: Apache-2.0
// What tests of adapters are made of.
#ifndef ONWARD_TESTS_TRAINING_INFO_LORA_MODELS_H_
#define ONWARD_TESTS_TRAINING_INFO_LORA_MODELS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/adapters/files.h"
#include "training_info/author.h"
#include "training_info/export.h"

namespace onward {

inline constexpr double kTolerance = 1e-5;

inline constexpr char kTwoLayers[] = R"(
  m (float[N, 4] x) => (float[N, 2] y)
  <float[4, 3] first_weight = {0.1, -0.2, 0.3, 0.4, 0.5, -0.6, 0.7, 0.8, -0.9, 0.1, 0.2, 0.3},
   float[3] first_bias = {0.1, 0.2, 0.3},
   float[3, 2] last_weight = {0.7, -0.1, 0.2, 0.3, -0.4, 0.5}, float[2] last_bias = {0, 0}> {
    h = Gemm(x, first_weight, first_bias)
    t = Tanh(h)
    y = Gemm(t, last_weight, last_bias)
  })";

// Numbers between -1 and 1 that look random, as the text of an initializer: "= {0.25, -0.5}".
inline std::string Numbers(int64_t n, int seed = 1) {
  std::vector<std::string> texts;
  for (int64_t i = 0; i < n; ++i)
    texts.push_back(absl::StrCat(std::round(1000 * std::sin(12.9898 * (i + 1) * seed)) / 1000));
  return absl::StrCat("= {", absl::StrJoin(texts, ", "), "}");
}

inline Tensor Data(const Shape& shape, int seed) {
  Tensor t(DType::kFloat, shape);
  for (int64_t i = 0; i < t.elements(); ++i)
    t.data<float>()[i] = static_cast<float>(std::cos(7.77 * static_cast<double>(i + seed)));
  return t;
}

inline LoraSpec Lora(const std::string& text) { return ParseLora(text).value(); }

inline AuthorOptions WithLora(const std::string& text) {
  AuthorOptions options;
  options.loss = {"mse", {}};
  options.optimizer = {"sgd", {{"lr", 0.5}}};
  options.lora = {Lora(text)};
  return options;
}

inline AuthorResult Made(const Model& model, const AuthorOptions& options) {
  auto made = MakeTrainable(model, options, DefaultEnvironment());
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? *std::move(made) : AuthorResult{};
}

// Relative to the largest value, which counts as 1 at least.
inline double Distance(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) return INFINITY;
  const std::vector<double> x = Values(a), y = Values(b);
  double most = 0, scale = 1;
  for (size_t i = 0; i < x.size(); ++i) {
    most = std::max(most, std::abs(x[i] - y[i]));
    scale = std::max(scale, std::abs(x[i]));
  }
  return most / scale;
}

inline MergedModel Merge(const Model& model, MergeMode mode = MergeMode::kFloat) {
  auto merged = WithAdaptersMerged(InferenceOnly(model), mode, DefaultEnvironment());
  EXPECT_TRUE(merged.ok()) << merged.status();
  return merged.ok() ? *std::move(merged) : MergedModel{};
}

inline int CountOps(const Model& model, const std::string& op) {
  const Graph graph = *InferenceGraph(model);
  return static_cast<int>(std::count_if(graph.nodes.begin(), graph.nodes.end(),
                                        [&](const Node& n) { return n.op_type == op; }));
}

}  // namespace onward

#endif  // ONWARD_TESTS_TRAINING_INFO_LORA_MODELS_H_
