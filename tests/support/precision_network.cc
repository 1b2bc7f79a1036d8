// SPDX-License-Identifier: Apache-2.0
#include "tests/support/precision_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/validate.h"

namespace onward {

Model Convolutional(const std::string& type) {
  std::string text = R"(<ir_version: 8, opset_import: ["" : 18]>
  m (T[N, 1, 6, 6] x) => (T[N, 2] y)
  <T[2, 1, 3, 3] K = {0.1, -0.2, 0.3, 0.4, 0.5, -0.6, 0.7, 0.1, -0.3,
                      0.2, 0.6, -0.5, 0.1, 0.2, -0.4, 0.3, 0.5, -0.1},
   T[2] kb = {0.1, -0.1}, T[2] s = {1, 1}, T[2] b = {0, 0}, T[2] mean = {0, 0}, T[2] var = {1, 1},
   T[2, 3] W = {0.3, -0.2, 0.1, 0.5, 0.4, -0.3}, T[3] wb = {0.1, 0, 0.2},
   T[3, 2] V = {0.7, -0.1, 0.2, 0.3, -0.4, 0.5}, T[2] vb = {0, 0}> {
    c = Conv(x, K, kb)
    n = BatchNormalization(c, s, b, mean, var)
    r = Relu(n)
    g = GlobalAveragePool(r)
    f = Flatten(g)
    p = MatMul(f, W)
    q = Add(p, wb)
    t = Tanh(q)
    y = Gemm(t, V, vb)
  })";
  for (size_t at; (at = text.find("T[")) != std::string::npos;) text.replace(at, 1, type);
  return TextModel(text);
}

TensorMap ConvolutionalFeeds(int i, DType dtype, float factor) {
  Tensor x(DType::kFloat, {8, 1, 6, 6});
  for (int64_t k = 0; k < x.elements(); ++k) {
    x.data<float>()[k] = factor * static_cast<float>((k * 7 + i * 3 + k * k % 11) % 13 - 6) / 4;
  }
  return {{"x", RoundedTo(dtype, x)}, {"label", Int64s({0, 1, 1, 0, 1, 0, 0, 1})}};
}

AuthorOptions InPrecision(DType precision) {
  AuthorOptions options;
  options.optimizer = ParseOptimizer("adamw:lr=0.02").value();
  options.precision = precision;
  return options;
}

AuthorResult MadeSound(const Model& model, const AuthorOptions& options) {
  auto made = MakeTrainable(model, options, DefaultEnvironment());
  EXPECT_TRUE(made.ok()) << made.status();
  if (!made.ok()) return {};
  auto findings = CheckModel(made->model, DefaultEnvironment());
  EXPECT_TRUE(findings.ok()) << findings.status();
  EXPECT_THAT(*findings, testing::IsEmpty());
  return *std::move(made);
}

double LossOfStep(TrainingModel* model, const TensorMap& feeds) {
  auto out = model->Step(feeds, {"loss"});
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? Values(out->at("loss"))[0] : NAN;
}

}  // namespace onward
