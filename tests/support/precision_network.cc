// SPDX-License-Identifier: Apache-2.0
#include "tests/support/precision_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/validate.h"

namespace onward {

namespace {

// ONNX's text has numbers of 16 bits as their bits.
std::string WithBits(std::string text, DType dtype) {
  for (size_t at = 0; (at = text.find("= {", at)) != std::string::npos; ++at) {
    const size_t begin = at + 3, end = text.find('}', at);
    std::vector<int> bits;
    for (absl::string_view word : absl::StrSplit(text.substr(begin, end - begin), ',')) {
      float number = 0;
      EXPECT_TRUE(absl::SimpleAtof(word, &number)) << word;
      const Tensor rounded = RoundedTo(dtype, Floats({1}, {number}));
      uint16_t raw;
      std::memcpy(&raw, rounded.data<char>(), sizeof(raw));
      bits.push_back(raw);
    }
    text.replace(begin, end - begin, absl::StrJoin(bits, ", "));
  }
  return text;
}

}  // namespace

Model Convolutional(DType dtype) {
  std::string text = R"(
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
  if (dtype != DType::kFloat) text = WithBits(text, dtype);
  for (size_t at; (at = text.find("T[")) != std::string::npos;) {
    text.replace(at, 1, DTypeName(dtype));
  }
  // Convolutions of bfloat16 came with opset 22.
  return TextModel((dtype == DType::kFloat ? "<ir_version: 8, opset_import: [\"\" : 18]>"
                                           : "<ir_version: 10, opset_import: [\"\" : 22]>") +
                   text);
}

TensorMap ConvolutionalFeeds(int i, DType dtype, float factor) {
  const std::initializer_list<int64_t> labels = {0, 1, 1, 0, 1, 0, 0, 1};
  Tensor x(DType::kFloat, {8, 1, 6, 6});
  for (int64_t k = 0; k < x.elements(); ++k) {
    const float noise = static_cast<float>((k * 7 + i * 3 + k * k % 11) % 13 - 6) / 4;
    x.data<float>()[k] = factor * (noise + (labels.begin()[k / 36] == 1 ? 0.75f : -0.75f));
  }
  return {{"x", RoundedTo(dtype, x)}, {"label", Int64s(labels)}};
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
