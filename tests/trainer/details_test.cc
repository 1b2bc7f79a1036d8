// SPDX-License-Identifier: Apache-2.0
// What a run tells to those who want details, and that telling it changes no number.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "data/arrays/npy.h"
#include "environment/environment.h"
#include "tests/support/classified.h"
#include "tests/support/scratch.h"
#include "tests/support/test_environment.h"
#include "tests/support/text_model.h"
#include "trainer/run/evaluate.h"
#include "trainer/run/loop.h"
#include "training_info/author.h"
#include "training_info/lower.h"

namespace onward::details_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kExamples = 12, kBatch = 4;

class Details : public RunListener {
 public:
  explicit Details(bool wanted) : wanted_(wanted) {}
  absl::Status OnStep(const StepEvent& step) override {
    words.push_back(absl::StrCat("step ", step.step));
    return absl::OkStatus();
  }
  absl::Status OnEvaluation(const EvaluationEvent& e) override {
    words.push_back(absl::StrCat(e.baseline ? "baseline " : "eval ", e.step));
    return absl::OkStatus();
  }
  void OnNorms(const ReportNorms& moment) override {
    words.push_back(absl::StrCat("norms ", moment.step));
    norms.push_back(moment);
  }
  absl::Status OnEnd(const EndEvent& end) override {
    result = end.result;
    return absl::OkStatus();
  }
  absl::Status OnStart(const RunFacts& told) override {
    facts = told;
    return absl::OkStatus();
  }
  bool wants_details() const override { return wanted_; }

  RunFacts facts;
  std::vector<std::string> words;
  std::vector<ReportNorms> norms;
  TrainResult result;

 private:
  bool wanted_;
};

class DetailsTest : public ::testing::Test {
 protected:
  DetailsTest() {
    Tensor x(DType::kFloat, {kExamples, 2}), y(DType::kInt64, {kExamples});
    for (int64_t i = 0; i < kExamples; ++i) {
      x.data<float>()[2 * i] = X(i, 0);
      x.data<float>()[2 * i + 1] = X(i, 1);
      y.data<int64_t>()[i] = i % 2;
    }
    data_ = Data(x, y);
  }
  static float X(int64_t example, int feature) {
    return feature == 0 ? static_cast<float>(example % 5) : 0.5f * static_cast<float>(example % 3);
  }
  std::shared_ptr<const Dataset> Data(const Tensor& x, const Tensor& y) {
    EXPECT_TRUE(WriteNpy(scratch_.Path("x.npy"), x).ok());
    EXPECT_TRUE(WriteNpy(scratch_.Path("y.npy"), y).ok());
    auto data = ParseDataSpec("npy:" + scratch_.Path("x.npy") + "," + scratch_.Path("y.npy"),
                              Split::kTrain);
    EXPECT_TRUE(data.ok()) << data.status();
    return data.ok() ? std::shared_ptr<const Dataset>(*std::move(data)) : nullptr;
  }
  void Run(const std::string& name, Details* details, AuthorOptions author = {}) {
    const auto authored =
        MakeTrainable(TextModel(LinearClassifier(2, 2)), author, DefaultEnvironment());
    ASSERT_TRUE(authored.ok()) << authored.status();
    const auto model = Open(authored->model);
    TrainOptions options;
    options.output = scratch_.Path(name);
    options.batch = kBatch;
    options.epochs = 2;
    options.shuffle = false;
    const auto result = Train(model.get(), data_, data_, options, details, nullptr);
    ASSERT_TRUE(result.ok()) << result.status();
  }
  absl::StatusOr<Evaluation> Evaluate(const std::string& model, const Tensor& x, const Tensor& y,
                                      int wrong_examples, int64_t batch = 2,
                                      const std::vector<std::string>& losses = {}) {
    EvaluateOptions options;
    options.wrong_examples = wrong_examples;
    options.batch = batch;
    for (const std::string& loss : losses) options.terms.push_back(ParseLossTerm(loss).value());
    auto graph = RunnableGraph(TextModel(model), DefaultEnvironment());
    if (!graph.ok()) return graph.status();
    auto evaluator = Evaluator::Create(*std::move(graph), Data(x, y), options, TestEnvironment());
    if (!evaluator.ok()) return evaluator.status();
    return (*evaluator)->Run(nullptr);
  }

  Scratch scratch_;
  std::shared_ptr<const Dataset> data_;
};

TEST_F(DetailsTest, AreToldToThoseWhoWantThem) {
  Details with(true), without(false);
  Run("with.onnx", &with);
  Run("without.onnx", &without);
  EXPECT_THAT(with.words, ElementsAre("baseline 0", "step 1", "step 2", "step 3", "norms 3",
                                      "eval 3", "step 4", "step 5", "step 6", "norms 6", "eval 6"));
  EXPECT_THAT(without.words, ElementsAre("step 1", "step 2", "step 3", "eval 3", "step 4", "step 5",
                                         "step 6", "eval 6"));
  EXPECT_EQ(scratch_.Read("with.onnx"), scratch_.Read("without.onnx"));
  EXPECT_FALSE(with.result.operators.empty());
  EXPECT_TRUE(without.result.operators.empty());
  EXPECT_GT(with.result.peak_bytes, 1 << 20);
  // They take memory of their own, which is told beforehand.
  EXPECT_GT(with.facts.memory_bytes, without.facts.memory_bytes);
  EXPECT_THAT(with.facts.settings.back().value, HasSubstr(", norms of layers "));
  EXPECT_THAT(without.facts.settings.back().value, Not(HasSubstr("norms")));
}

// w is 0, so both classes have the probability 1/2, and with a rate of nothing it stays so: the
// gradient is x^T (1/2 - label) / batch.
TEST_F(DetailsTest, GradientsAreThoseOfTheLastBatch) {
  double sum = 0;
  for (int feature = 0; feature < 2; ++feature) {
    double g = 0;
    for (int64_t i = kExamples - kBatch; i < kExamples; ++i) {
      g += X(i, feature) * (i % 2 == 0 ? -0.5 : 0.5) / kBatch;
    }
    sum += 2 * g * g;  // of the other class it is -g
  }
  for (const GradientForm form : {GradientForm::kOperator, GradientForm::kExpanded}) {
    AuthorOptions author;
    author.optimizer = ParseOptimizer("sgd:lr=1e-30").value();
    author.gradient = form;
    Details details(true);
    Run(absl::StrCat("m", static_cast<int>(form), ".onnx"), &details, author);
    ASSERT_EQ(details.norms.size(), 2u);
    ASSERT_EQ(details.norms[0].layers.size(), 1u);
    const LayerNorm& layer = details.norms[0].layers[0];
    EXPECT_EQ(layer.name, "w");
    EXPECT_EQ(layer.numbers, 4);
    EXPECT_NEAR(layer.weight, 0, 1e-25);
    EXPECT_NEAR(layer.gradient, std::sqrt(sum), 1e-6);
  }
}

// What the loss is scaled by for the sake of float16 is no part of the gradient.
TEST_F(DetailsTest, GradientsAreNotScaled) {
  std::vector<double> norms;
  for (const bool scaled : {false, true}) {
    AuthorOptions author;
    author.optimizer = ParseOptimizer("sgd:lr=1e-30").value();
    if (scaled) author.precision = DType::kFloat16;
    Details details(true);
    Run(absl::StrCat("s", scaled, ".onnx"), &details, author);
    ASSERT_FALSE(details.norms.empty());
    norms.push_back(details.norms[0].layers.at(0).gradient);
  }
  EXPECT_NEAR(norms[1], norms[0], 0.01 * norms[0]);
}

TEST_F(DetailsTest, TheMostConfidentMistakesAreKept) {
  // Scores of two classes, all labels 0: example i is wrong by the margin that stands here.
  const std::vector<float> margins = {1.5f, -2, 4, 0.5f, 3, 4};
  Tensor x = Tensor::Zeros(DType::kFloat, {6, 2});
  for (int i = 0; i < 6; ++i) x.data<float>()[2 * i + 1] = margins[i];
  const Tensor y = Tensor::FromValues<int64_t>({6}, {0, 0, 0, 0, 0, 0});
  const auto e = Evaluate("g (float[N, 2] x) => (float[N, 2] y) { y = Identity(x) }", x, y, 3);
  ASSERT_TRUE(e.ok()) << e.status();
  std::vector<int64_t> examples;
  for (const WrongExample& w : e->wrong) examples.push_back(w.example);
  EXPECT_THAT(examples, ElementsAre(2, 5, 4));
  EXPECT_NEAR(e->wrong[0].confidence, 1 / (1 + std::exp(-4)), 1e-6);
  EXPECT_EQ(e->wrong_total, 5);
  ASSERT_TRUE(e->calibration.has_value());
  EXPECT_EQ(e->calibration->total(), 6);
  EXPECT_TRUE(std::isnan(e->perplexity)) << "one answer for each example is no sequence";
}

TEST_F(DetailsTest, SequencesHaveAPerplexity) {
  const Tensor x = Tensor::Zeros(DType::kFloat, {4, 5, 3});
  const Tensor y = Tensor::Zeros(DType::kInt64, {4, 5});
  const auto e =
      Evaluate("g (float[N, 5, 3] x) => (float[N, 5, 3] y) { y = Identity(x) }", x, y, 0);
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_NEAR(e->perplexity, 3, 1e-5) << "three classes, none more probable than another";
  EXPECT_NEAR(e->perplexity, std::exp(e->loss), 1e-9);
}

// Of 12 labels 7 count, all but one of them in the first batch of two, none in the last. The score
// of class 1 is the position: -log p = log(1 + e^x) - label * x.
TEST_F(DetailsTest, LabelsThatCountWeighTheSameInEveryBatch) {
  constexpr int64_t kNo = -100;
  const Tensor y = Tensor::FromValues<int64_t>({6, 3}, {0, 1, 1, 1, 0, 0,            //
                                                        kNo, 1, kNo, kNo, kNo, kNo,  //
                                                        kNo, kNo, kNo, kNo, kNo, kNo});
  Tensor x = Tensor::Zeros(DType::kFloat, {6, 3, 2});
  double sum = 0, weighted = 0, weights = 0;
  int counted = 0;
  for (int i = 0; i < 18; ++i) {
    const double score = 0.25 * i - 1;
    x.data<float>()[2 * i + 1] = static_cast<float>(score);
    const int64_t label = y.data<int64_t>()[i];
    if (label == kNo) continue;
    const double cost = std::log1p(std::exp(score)) - static_cast<double>(label) * score;
    const double weight = label == 0 ? 0.5 : 3;
    sum += cost;
    weighted += weight * cost;
    weights += weight;
    ++counted;
  }
  const std::string model = "g (float[N, 3, 2] x) => (float[N, 3, 2] y) { y = Identity(x) }";
  const std::string loss = "cross_entropy:axis=-1,ignore_index=-100";
  for (const int64_t batch : {1, 2, 6}) {
    SCOPED_TRACE(batch);
    const auto plain = Evaluate(model, x, y, 0, batch, {loss});
    ASSERT_TRUE(plain.ok()) << plain.status();
    EXPECT_NEAR(plain->loss, sum / counted, 1e-6);
    EXPECT_NEAR(plain->perplexity, std::exp(sum / counted), 1e-5);
    EXPECT_EQ(plain->judged, counted);
    const auto half = Evaluate(model, x, y, 0, batch, {"0.5*" + loss});
    ASSERT_TRUE(half.ok()) << half.status();
    EXPECT_NEAR(half->loss, 0.5 * sum / counted, 1e-6);
    EXPECT_NEAR(half->perplexity, std::exp(sum / counted), 1e-5);
    const auto by_class = Evaluate(model, x, y, 0, batch, {loss + ",weight=0.5/3"});
    ASSERT_TRUE(by_class.ok()) << by_class.status();
    EXPECT_NEAR(by_class->loss, weighted / weights, 1e-6);
  }
}

TEST_F(DetailsTest, NumbersHavePairsAndAShareOfWhatIsExplained) {
  const Tensor x = Tensor::FromValues<float>({4, 1}, {1, 2, 3, 4});
  const Tensor y = Tensor::FromValues<float>({4, 1}, {1, 2, 3, 6});
  const auto e = Evaluate("g (float[N, 1] x) => (float[N, 1] y) { y = Identity(x) }", x, y, 0);
  ASSERT_TRUE(e.ok()) << e.status();
  ASSERT_EQ(e->pairs.size(), 4u);
  EXPECT_EQ(e->pairs[3].actual, 6);
  EXPECT_EQ(e->pairs[3].predicted, 4);
  EXPECT_NEAR(e->r2, 1 - 4.0 / 14, 1e-9);
}

}  // namespace onward::details_test
