// SPDX-License-Identifier: Apache-2.0
// Training in bfloat16 and float16: what is cast, what is not, and steps that overflow.
#include "training_info/surgery/precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "core/graph/infer.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"
#include "training_info/averages.h"
#include "training_info/combine.h"
#include "training_info/import.h"
#include "training_info/loss_scale.h"
#include "training_info/validate.h"

namespace onward {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A network of the usual parts: {0} is the element type.
std::string Convolutional(const std::string& type) {
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
  return text;
}

TensorMap Feeds(int i, DType dtype = DType::kFloat, float factor = 1) {
  Tensor x(DType::kFloat, {8, 1, 6, 6});
  for (int64_t k = 0; k < x.elements(); ++k) {
    x.data<float>()[k] = factor * static_cast<float>((k * 7 + i * 3 + k * k % 11) % 13 - 6) / 4;
  }
  return {{"x", RoundedTo(dtype, x)}, {"label", Int64s({0, 1, 1, 0, 1, 0, 0, 1})}};
}

AuthorOptions Options(DType precision) {
  AuthorOptions options;
  options.optimizer = ParseOptimizer("adamw:lr=0.02").value();
  options.precision = precision;
  return options;
}

AuthorResult Made(const Model& model, const AuthorOptions& options) {
  auto made = MakeTrainable(model, options, DefaultEnvironment());
  EXPECT_TRUE(made.ok()) << made.status();
  if (!made.ok()) return {};
  auto findings = CheckModel(made->model, DefaultEnvironment());
  EXPECT_TRUE(findings.ok()) << findings.status();
  EXPECT_THAT(*findings, IsEmpty());
  return *std::move(made);
}

double Step(TrainingModel* model, const TensorMap& feeds) {
  auto out = model->Step(feeds, {"loss"});
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? Values(out->at("loss"))[0] : NAN;
}

double Number(const TrainingModel& model, const std::string& name) {
  return ValueOf(model, name)[0];
}

// "Conv:float16" for every node of the algorithm that computes in a floating-point type.
std::vector<std::string> Computations(const Model& model) {
  auto spec = ImportTraining(model);
  EXPECT_TRUE(spec.ok());
  auto graph = Combine(*spec, 0);
  EXPECT_TRUE(graph.ok());
  EXPECT_TRUE(InferTypes(&*graph, DefaultEnvironment().operators()).ok());
  std::vector<std::string> types;
  for (size_t i = spec->inference.nodes.size(); i < graph->nodes.size(); ++i) {
    const Node& node = graph->nodes[i];
    if (node.Is("SoftmaxCrossEntropyLoss")) break;
    const ValueType* type = graph->TypeOf(node.outputs[0]);
    if (node.Is("Cast") || type == nullptr || !IsFloating(type->dtype)) continue;
    types.push_back(absl::StrCat(node.op_type, ":", DTypeName(type->dtype)));
  }
  return types;
}

class Precisions : public testing::TestWithParam<DType> {
 protected:
  std::string low() const { return std::string(DTypeName(GetParam())); }
};

TEST_P(Precisions, CastsWhatMayBeCast) {
  const AuthorResult made = Made(TextModel(Convolutional("float")), Options(GetParam()));
  const std::string t = ":" + low();
  EXPECT_THAT(
      Computations(made.model),
      ElementsAre("Conv" + t, "BatchNormalization:float", "Relu:float", "GlobalAveragePool:float",
                  "Flatten:float", "MatMul" + t, "Add" + t, "Tanh" + t, "Gemm" + t));
  auto model = Open(made.model);
  for (const auto& [name, tensor] : model->variables()) {
    EXPECT_TRUE(!IsFloating(tensor.dtype()) || tensor.dtype() == DType::kFloat) << name;
  }
}

TEST_P(Precisions, LearnsLikeFloat) {
  auto wide = Open(Made(TextModel(Convolutional("float")), Options(DType::kUndefined)).model);
  auto low = Open(Reread(Made(TextModel(Convolutional("float")), Options(GetParam())).model));
  double first = 0, last = 0, reference = 0;
  for (int i = 0; i < 30; ++i) {
    reference = Step(wide.get(), Feeds(i % 3));
    last = Step(low.get(), Feeds(i % 3));
    if (i == 0) first = last;
  }
  EXPECT_LT(last, 0.8 * first);
  EXPECT_NEAR(last, reference, 0.15 * first);
  EXPECT_NE(last, reference);
}

TEST_P(Precisions, AModelOf16BitsHasMasters) {
  const std::string own = low();
  const Model source = TextModel(Convolutional(own));
  AuthorOptions options = Options(GetParam());
  options.optimizer = ParseOptimizer("adam:lr=0.001").value();  // the standard's, of float alone
  const AuthorResult made = Made(source, options);
  auto model = Open(Reread(made.model));
  const std::vector<double> start = ValueOf(*model, "K__master");
  EXPECT_EQ(start, ValueOf(*model, "K"));
  double first = 0, last = 0;
  for (int i = 0; i < 40; ++i) {
    last = Step(model.get(), Feeds(i % 3, GetParam()));
    if (i == 0) first = last;
    for (const std::string& name : made.trained) {
      const Variables& v = std::as_const(*model).variables();
      EXPECT_EQ(v.at(name).dtype(), GetParam());
      EXPECT_EQ(v.at(name + "__master").dtype(), DType::kFloat);
      EXPECT_TRUE(Identical(v.at(name), RoundedTo(GetParam(), v.at(name + "__master")))) << name;
    }
  }
  EXPECT_LT(last, first);
  EXPECT_NE(ValueOf(*model, "K__master"), start);
  EXPECT_EQ(model->variables().at("mean").dtype(), GetParam());
  EXPECT_EQ(model->Infer({{"x", Feeds(0, GetParam())["x"]}})->at("y").dtype(), GetParam());
  // Masters begin where weights do, drawn ones, too.
  ASSERT_TRUE(model->Initialize().ok());
  EXPECT_EQ(ValueOf(*model, "K__master"), ValueOf(*model, "K"));
}

INSTANTIATE_TEST_SUITE_P(Types, Precisions, testing::Values(DType::kBFloat16, DType::kFloat16),
                         [](const auto& info) { return std::string(DTypeName(info.param)); });

struct Row {
  std::string name, text;
  std::vector<std::string> computations;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class Parts : public testing::TestWithParam<Row> {};

TEST_P(Parts, HaveTheirPrecision) {
  AuthorOptions options = Options(DType::kFloat16);
  options.loss = ParseLoss("mse").value();
  auto made = MakeTrainable(TextModel(GetParam().text), options, DefaultEnvironment());
  ASSERT_TRUE(made.ok()) << made.status();
  std::vector<std::string> computed = Computations(made->model);
  computed.resize(std::min(computed.size(), GetParam().computations.size()));
  EXPECT_EQ(computed, GetParam().computations);
}

constexpr char kWeights[] =
    "<float[2, 2] W = {1, 2, 3, 4}, float[2] s = {1, 1}, float[2] b = {0, 0}, "
    "float[2, 2] V = {1, 0, 0, 1}, float large = {-1e9}>";

INSTANTIATE_TEST_SUITE_P(
    Networks, Parts,
    testing::Values(
        Row{"NormalisationAndSoftmaxAreFloat",
            absl::StrCat("m (float[N, 2] x) => (float[N, 2] y) ", kWeights,
                         "{ h = MatMul(x, W) n = LayerNormalization(h, s, b) p = Softmax(n) "
                         "y = MatMul(p, V) }"),
            {"MatMul:float16", "LayerNormalization:float", "Softmax:float", "MatMul:float16"}},
        Row{"ResidualsPromote",
            absl::StrCat("m (float[N, 2] x) => (float[N, 2] y) ", kWeights,
                         "{ h = MatMul(x, W) r = Add(h, x) y = MatMul(r, V) }"),
            {"MatMul:float16", "Add:float", "MatMul:float16"}},
        Row{"WhatFloat16CannotHoldStaysFloat",
            absl::StrCat("m (float[N, 2] x) => (float[N, 2] y) ", kWeights,
                         "{ h = MatMul(x, W) l = Max(h, large) y = MatMul(l, V) }"),
            {"MatMul:float16", "Max:float", "MatMul:float16"}},
        Row{"ReductionsAreFloat",
            absl::StrCat("m (float[N, 2] x) => (float[N, 2] y) ", kWeights,
                         "{ h = MatMul(x, W) e = Exp(h) l = ReduceSum <keepdims = 1> (e) "
                         "d = Div(h, l) y = MatMul(d, V) }"),
            {"MatMul:float16", "Exp:float", "ReduceSum:float", "Div:float", "MatMul:float16"}},
        Row{"MovementFollows",
            absl::StrCat("m (float[N, 2] x) => (float[N, 2] y) ", kWeights,
                         "{ h = MatMul(x, W) t = Transpose(h) u = Transpose(t) "
                         "y = MatMul(u, V) }"),
            {"MatMul:float16", "Transpose:float16", "Transpose:float16", "MatMul:float16"}},
        Row{"BranchesKeepTheirTypes",
            absl::StrCat("m (bool c, float[N, 2] x) => (float[N, 2] y) ", kWeights,
                         "{ h = MatMul(x, W) z = If (c) < then_branch = t () => (float[N, 2] u) "
                         "{ u = Mul(h, x) }, else_branch = e () => (float[N, 2] v) "
                         "{ v = Identity(h) }> y = MatMul(z, V) }"),
            {"MatMul:float16", "If:float", "MatMul:float16"}},
        Row{"CastsOfTheFileGoAway",
            absl::StrCat("m (float[N, 2] x) => (float[N, 2] y) ", kWeights,
                         "{ d = Cast <to = 10> (x) e = Cast <to = 1> (d) h = MatMul(e, W) "
                         "y = MatMul(h, V) }"),
            {"MatMul:float16", "MatMul:float16"}}),
    [](const auto& info) { return info.param.name; });

TEST(Precision, NeedsAProductOfFloats) {
  AuthorOptions options = Options(DType::kFloat16);
  options.loss = ParseLoss("mse").value();
  for (const char* text : {"m (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { y = Mul(x, W) }",
                           "m (double[2, 2] x) => (double[2, 2] y) <double[2, 2] W = {1, 2, 3, 4}> "
                           "{ y = MatMul(x, W) }"}) {
    auto made = MakeTrainable(TextModel(text), options, DefaultEnvironment());
    EXPECT_THAT(std::string(made.status().message()), HasSubstr("can be computed in float16"));
  }
  options.precision = DType::kDouble;
  auto made = MakeTrainable(TextModel(Convolutional("float")), options, DefaultEnvironment());
  EXPECT_THAT(std::string(made.status().message()), HasSubstr("precision is double"));
}

// --- loss scaling

class Scaling : public testing::Test {
 protected:
  static std::unique_ptr<TrainingModel> Model() {
    AuthorOptions options = Options(DType::kFloat16);
    options.ema = 0.9;
    return Open(Reread(Made(TextModel(Convolutional("float")), options).model));
  }
  static void Set(TrainingModel* model, const std::string& name, double value) {
    Tensor& t = model->variables().at(name);
    if (t.dtype() == DType::kFloat) {
      *t.data<float>() = static_cast<float>(value);
    } else {
      *t.data<int64_t>() = static_cast<int64_t>(value);
    }
  }
  static Variables WithoutScale(const TrainingModel& model) {
    Variables copy;
    for (const auto& [name, tensor] : model.variables()) {
      if (name != "onward_loss_scale" && name != "onward_growth_steps" &&
          name != "onward_skipped_steps") {
        copy.emplace(name, tensor.Clone());
      }
    }
    return copy;
  }
};

TEST_F(Scaling, StartsLikeGradScaler) {
  auto model = Model();
  EXPECT_EQ(Number(*model, "onward_loss_scale"), 65536);
  Step(model.get(), Feeds(0));
  EXPECT_EQ(Number(*model, "onward_skipped_steps") + Number(*model, "onward_growth_steps"), 1);
}

TEST_F(Scaling, AnOverflowIsSkippedAndCounted) {
  auto model = Model();
  Set(model.get(), "onward_loss_scale", 1024);
  Step(model.get(), Feeds(0));
  ASSERT_EQ(Number(*model, "onward_skipped_steps"), 0);
  Set(model.get(), "onward_loss_scale", std::ldexp(1, 100));
  for (const std::vector<std::string>& outputs : {std::vector<std::string>{"loss"}, {}}) {
    const Variables before = WithoutScale(*model);
    const double skipped = Number(*model, "onward_skipped_steps");
    const double scale = Number(*model, "onward_loss_scale");
    const uint64_t draws = model->random().step;
    auto out = model->Step(Feeds(1), outputs);
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_TRUE(std::isfinite(Values(out->at("loss"))[0]));
    EXPECT_TRUE(SameVariables(before, WithoutScale(*model)));
    EXPECT_EQ(Number(*model, "onward_skipped_steps"), skipped + 1);
    EXPECT_EQ(Number(*model, "onward_loss_scale"), scale / 2);
    EXPECT_EQ(Number(*model, "onward_growth_steps"), 0);
    EXPECT_EQ(model->random().step, draws + 1);
  }
}

TEST_F(Scaling, RecoversWithTheSameBytesEveryTime) {
  std::string bytes;
  for (int run = 0; run < 2; ++run) {
    auto model = Model();
    Set(model.get(), "onward_loss_scale", std::ldexp(1, 40));
    const std::vector<double> start = ValueOf(*model, "W");
    for (int i = 0; i < 40; ++i) Step(model.get(), Feeds(i));
    EXPECT_GT(Number(*model, "onward_skipped_steps"), 10);
    EXPECT_GT(Number(*model, "onward_growth_steps"), 0);
    EXPECT_NE(ValueOf(*model, "W"), start);
    auto exported = model->Export();
    ASSERT_TRUE(exported.ok());
    if (run == 0) bytes = Bytes(*exported);
    EXPECT_EQ(Bytes(*exported), bytes);
  }
}

// The forward pass overflows, the loss is no number: still no error.
TEST_F(Scaling, ABatchThatOverflowsIsLeftOut) {
  auto model = Model();
  Set(model.get(), "onward_loss_scale", 1024);
  Step(model.get(), Feeds(0));
  const Variables before = WithoutScale(*model);
  const double loss = Step(model.get(), Feeds(1, DType::kFloat, 1e6f));
  EXPECT_FALSE(std::isfinite(loss));
  EXPECT_TRUE(SameVariables(before, WithoutScale(*model)));
  EXPECT_EQ(Number(*model, "onward_skipped_steps"), 1);
  EXPECT_TRUE(std::isfinite(Step(model.get(), Feeds(2))));
  EXPECT_FALSE(SameVariables(before, WithoutScale(*model)));
}

TEST_F(Scaling, GrowsAfterManyGoodSteps) {
  auto model = Model();
  Set(model.get(), "onward_loss_scale", 1024);
  Set(model.get(), "onward_growth_steps", LossScale::kGrowthInterval - 2);
  Step(model.get(), Feeds(0));
  EXPECT_EQ(Number(*model, "onward_loss_scale"), 1024);
  Step(model.get(), Feeds(1));
  EXPECT_EQ(Number(*model, "onward_loss_scale"), 2048);
  EXPECT_EQ(Number(*model, "onward_growth_steps"), 0);
}

// What no scale can help is an error in the end, as it is in float.
TEST_F(Scaling, NaNInTheDataIsAnErrorAtTheSmallestScale) {
  auto model = Model();
  TensorMap bad = Feeds(0);
  bad["x"].data<float>()[3] = std::numeric_limits<float>::quiet_NaN();
  int skipped = 0;
  absl::Status status;
  while (status.ok() && skipped < 100) {
    status = model->Step(bad, {"loss"}).status();
    skipped += status.ok() ? 1 : 0;
  }
  EXPECT_EQ(skipped, 30);  // from 2^16 to 2^-14
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Number(*model, "onward_skipped_steps"), skipped);
}

// A call that overflows adds nothing to the sums and does not count as one of them.
TEST_F(Scaling, AccumulationGoesOnAfterAnOverflow) {
  AuthorOptions options = Options(DType::kFloat16);
  options.accumulate = 2;
  options.clip_norm = 1;
  const class Model made = Made(TextModel(Convolutional("float")), options).model;
  auto disturbed = Open(made), undisturbed = Open(made);
  for (auto* model : {disturbed.get(), undisturbed.get()}) {
    Set(model, "onward_loss_scale", 1024);
    Step(model, Feeds(0));
  }
  const double scale = Number(*disturbed, "onward_loss_scale");
  Step(disturbed.get(), Feeds(7, DType::kFloat, 1e6f));
  EXPECT_EQ(Number(*disturbed, "onward_skipped_steps"), 1);
  EXPECT_EQ(Number(*disturbed, "onward_accumulated"), 1);
  EXPECT_TRUE(SameVariables(WithoutScale(*disturbed), WithoutScale(*undisturbed)));
  Set(disturbed.get(), "onward_loss_scale", scale);
  for (auto* model : {disturbed.get(), undisturbed.get()}) Step(model, Feeds(1));
  EXPECT_EQ(Number(*disturbed, "onward_accumulated"), 0);
  EXPECT_TRUE(SameVariables(WithoutScale(*disturbed), WithoutScale(*undisturbed)));
}

}  // namespace
}  // namespace onward
