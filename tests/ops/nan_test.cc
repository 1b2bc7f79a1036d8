// SPDX-License-Identifier: Apache-2.0
// NaN propagates: put into one element of an input, it shows in every element of the
// results that depends on it, and in no other. Which elements those are is found out by
// trying other numbers there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/operator_set.h"
#include "environment/environment.h"
#include "tests/ops/cases.h"
#include "tests/support/test_environment.h"

namespace onward::nan_test {

using testing::ElementsAre;

// (operator, input): why NaN there does not show, or moves other elements.
const std::map<std::pair<std::string, std::string>, std::string>& Decides() {
  static const auto* const reasons = new std::map<std::pair<std::string, std::string>, std::string>{
      {{"TopK", "x0"}, "counts as the largest: NanRules.Order"},
      {{"Unique", "x0"}, "counts as the largest: NanRules.Order"},
      {{"ReluGrad", "x1"}, "dx = dy where y > 0, as the graph says; the loss is NaN by then"},
      {{"ClipGrad", "x1"}, "dx = dy where x = y, as the graph says; the loss is NaN by then"},
      {{"ClipGrad", "x2"}, "dx = dy where x = y, as the graph says; the loss is NaN by then"},
      {{"GridSampleGrad", "x2"}, "says which pixels get the gradient"},
      {{"DeformColumnsGrad", "x2"}, "says which pixels get the gradient"},
      {{"MaxPoolGrad", "x1"}, "says which element gets the gradient: that of the NaN"},
  };
  return *reasons;
}

// Operator -> why zeros times NaN reach more results than other numbers do.
const std::map<std::string, std::string>& Spreads() {
  static const auto* const reasons = new std::map<std::string, std::string>{
      {"Attention", "a key that the mask hides has the weight 0"},
      {"ScaledDotProductAttention", "what is added to all scores of a row changes nothing"},
      {"Clip", "a bound that is NaN bounds everything"},
      {"Conv", "a weight that only the padding meets is multiplied by 0"},
      {"AffineGrid", "a pixel may stand at 0"},
      {"DeformConv", "a tap beyond the picture reads 0, and so may the mask"},
      {"DeformColumns", "a tap beyond the picture reads 0"},
      {"DeformColumnsGrad", "a tap beyond the picture reads 0"},
      {"RoiAlign", "a maximum sees every sample, however little it weighs"},
      {"DFT", "sums and differences are shared by all results"},
      {"STFT", "sums and differences are shared by all results"},
      {"DetGrad", "elimination mixes all elements"},
      {"Dropout", "what is dropped is multiplied by 0"},
      {"RNN", "a gate may be closed, a state zero"},
      {"GRU", "a gate may be closed, a state zero"},
      {"LSTM", "a gate may be closed, a state zero"},
  };
  return *reasons;
}

// Operator -> why there is nothing to see, or which test sees it.
const std::map<std::string, std::string>& NoRow() {
  static const auto* const reasons = new std::map<std::string, std::string>{
      {"And", "takes no numbers"},
      {"Or", "takes no numbers"},
      {"Xor", "takes no numbers"},
      {"Not", "takes no numbers"},
      {"BitCast", "gives other types"},
      {"BitShift", "takes integers"},
      {"BitwiseAnd", "takes integers"},
      {"BitwiseNot", "takes integers"},
      {"BitwiseOr", "takes integers"},
      {"BitwiseXor", "takes integers"},
      {"Constant", "takes nothing"},
      {"ConvInteger", "takes integers"},
      {"DequantizeLinear", "takes integers"},
      {"DynamicQuantizeLinear", "gives integers, of a range without NaN"},
      {"MatMulInteger", "takes integers"},
      {"QLinearConv", "takes integers"},
      {"QLinearMatMul", "takes integers"},
      {"QuantizeLinear", "gives integers; NaN becomes the lowest (quantize_test.cc)"},
      {"ConstantOfShape", "takes a shape"},
      {"EyeLike", "takes a shape"},
      {"Range", "gives as many elements as its numbers say"},
      {"MelWeightMatrix", "takes no numbers that could be NaN"},
      {"Shape", "takes a shape"},
      {"Size", "takes a shape"},
      {"RandomNormal", "takes nothing"},
      {"RandomNormalLike", "takes a shape"},
      {"RandomUniform", "takes nothing"},
      {"RandomUniformLike", "takes a shape"},
      {"Bernoulli", "gives 0 or 1"},
      {"Multinomial", "refuses NaN"},
      {"ImageDecoder", "takes bytes"},
      {"NonMaxSuppression", "gives numbers of boxes"},
      {"Equal", "NanRules.Comparisons"},
      {"Greater", "NanRules.Comparisons"},
      {"GreaterOrEqual", "NanRules.Comparisons"},
      {"Less", "NanRules.Comparisons"},
      {"LessOrEqual", "NanRules.Comparisons"},
      {"IsNaN", "NanRules.Comparisons"},
      {"IsInf", "NanRules.Comparisons"},
      {"ArgMax", "NanRules.Order"},
      {"ArgMin", "NanRules.Order"},
      {"Hardmax", "NanRules.Order"},
      {"NonZero", "NanRules.Order"},
      {"Cast", "its kernel is CastLike's"},
      {"Adagrad", "TrainingInfo.NonFiniteUpdateFailsTheStep"},
      {"Adam", "TrainingInfo.NonFiniteUpdateFailsTheStep"},
      {"Momentum", "TrainingInfo.NonFiniteUpdateFailsTheStep"},
      {"AdagradRowsStep", "TrainingInfo.NonFiniteUpdateFailsTheStep"},
      {"SgdRowsStep", "TrainingInfo.NonFiniteUpdateFailsTheStep"},
      {"GatherGradRows", "made by the compiler: GatherGrad's sums"},
      {"MaxPoolWinnersGrad", "made by the compiler: it adds dY where it is told to"},
      {"RNNTraining", "its kernel is RNN's"},
      {"GRUTraining", "its kernel is GRU's"},
      {"LSTMTraining", "its kernel is LSTM's"},
      {"RNNGrad", "NanGradientTest of RNN"},
      {"GRUGrad", "NanGradientTest of GRU"},
      {"LSTMGrad", "NanGradientTest of LSTM"},
      {"StringConcat", "takes text or integers"},
      {"StringNormalizer", "takes text or integers"},
      {"StringSplit", "takes text or integers"},
      {"RegexFullMatch", "takes text or integers"},
      {"TfIdfVectorizer", "takes text or integers"},
      {"TreeEnsemble", "MlNan.IsMissingOrShows"},
      {"TreeEnsembleRegressor", "MlNan.IsMissingOrShows"},
      {"TreeEnsembleClassifier", "MlNan.IsMissingOrShows"},
      {"LinearRegressor", "MlNan.IsMissingOrShows"},
      {"LinearClassifier", "MlNan.IsMissingOrShows"},
      {"SVMRegressor", "MlNan.IsMissingOrShows"},
      {"SVMClassifier", "MlNan.IsMissingOrShows"},
      {"Scaler", "MlNan.IsMissingOrShows"},
      {"Normalizer", "MlNan.IsMissingOrShows"},
      {"Imputer", "MlNan.IsMissingOrShows"},
      {"Binarizer", "MlNan.IsMissingOrShows"},
      {"FeatureVectorizer", "MlNan.IsMissingOrShows"},
      {"ArrayFeatureExtractor", "MlNan.IsMissingOrShows"},
      {"OneHotEncoder", "MlNan.IsMissingOrShows"},
      {"LabelEncoder", "MlNan.IsMissingOrShows"},
      {"CategoryMapper", "takes integers"},
      {"FusedConv", "NanInFusedSteps"},
      {"FusedGemm", "NanInFusedSteps"},
      {"FusedMatMul", "NanInFusedSteps"},
      {"FusedBatchNormalization", "NanInFusedSteps"},
      {"FusedBatchNormalizationGrad", "NanInFusedSteps"},
  };
  return *reasons;
}

std::vector<OpCase> CasesWithKernels() {
  std::vector<OpCase> cases = OpCases();
  // See KnownFailures of OpTest.
  return cases;
}

std::vector<OpCase> AllCases() {
  std::vector<OpCase> cases = CasesWithKernels();
  std::erase_if(cases, [](const OpCase& c) { return NoRow().contains(c.op); });
  for (OpCase& c : UnruledCases()) cases.push_back(std::move(c));
  return cases;
}

// A few elements: ends, and some between.
std::set<int64_t> PlacesIn(int64_t elements) {
  std::set<int64_t> places;
  for (int64_t i = 0; i < 5 && elements > 0; ++i) places.insert(i * (elements - 1) / 4);
  return places;
}

std::vector<double> AllValues(CaseRun& run, const std::string& input, int64_t at, double value) {
  std::vector<double> values;
  for (const Tensor& t : run.With(input, at, value)) {
    if (!IsFloating(t.dtype())) continue;
    const auto some = ToDoubles(t);
    values.insert(values.end(), some->begin(), some->end());
  }
  return values;
}

// Which of the results change with one element of an input. The largest number shows weights that
// are zero but for rounding.
std::vector<bool> DependsOn(CaseRun& run, const std::string& input, int64_t at,
                            const std::vector<double>& usual) {
  std::vector<bool> depends(usual.size(), false);
  for (const double other : {0.31, -0.27, 1.7, -1.6, 5.3, -5.7, 1e18}) {
    const std::vector<double> changed = AllValues(run, input, at, other);
    EXPECT_EQ(changed.size(), usual.size());
    for (size_t i = 0; i < std::min(usual.size(), changed.size()); ++i) {
      depends[i] = depends[i] || !(changed[i] == usual[i]);
    }
  }
  return depends;
}

void ExpectNans(CaseRun& run, const std::string& input, int64_t at, bool no_others) {
  const std::vector<double> usual = AllValues(run, input, at, run.At(input, at));
  const std::vector<bool> depends = DependsOn(run, input, at, usual);
  const std::vector<double> found =
      AllValues(run, input, at, std::numeric_limits<double>::quiet_NaN());
  ASSERT_EQ(found.size(), usual.size());
  for (size_t i = 0; i < usual.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "NaN in element " << at << " of " << input << ", element "
                                    << i << " of the results");
    if (depends[i]) {
      ASSERT_TRUE(std::isnan(found[i])) << found[i];
    } else if (no_others) {
      ASSERT_EQ(found[i], usual[i]);
    }
  }
}

// Kernels of devices are templates of their type.
std::vector<DType> ComparedTypes() {
  if (OnDevice()) return {DType::kFloat};
  return {DType::kFloat, DType::kDouble};
}

// Functions that a device has no kernel for run as their bodies, which multiply by zero.
bool RunsAsBody(const OpCase& c) {
  return OnDevice() && !c.domain.empty() &&
         TestEnvironment().accelerators()[0]->kernels().Find(c.op, c.domain) == nullptr;
}

class NanTest : public testing::TestWithParam<OpCase> {};

TEST_P(NanTest, Propagates) {
  const OpCase& c = GetParam();
  const bool spreads = Spreads().contains(c.op) || RunsAsBody(c);
  for (const DType dtype : ComparedTypes()) {
    CaseRun run(c, dtype);
    for (const auto& [input, elements] : run.reals()) {
      if (Decides().contains({c.op, input})) continue;
      for (const int64_t at : PlacesIn(elements)) {
        ExpectNans(run, input, at, !spreads);
        if (HasFatalFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, NanTest, testing::ValuesIn(AllCases()),
                         [](const auto& info) { return info.param.name; });

// In a gradient that arrives. What a formula multiplies by zero may be NaN too.
class NanGradientTest : public testing::TestWithParam<OpCase> {};

TEST_P(NanGradientTest, Propagates) {
  for (const DType dtype : ComparedTypes()) {
    CaseRun run(GetParam(), dtype, CaseRun::Of::kGradients);
    for (const auto& [input, elements] : run.reals()) {
      for (const int64_t at : PlacesIn(elements)) {
        ExpectNans(run, input, at, /*no_others=*/false);
        if (HasFatalFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, NanGradientTest, testing::ValuesIn(CasesWithKernels()),
                         [](const auto& info) { return info.param.name; });

TEST(NanCoverage, EveryKernelHasARowOrAReason) {
  std::set<std::string> checked;
  for (const OpCase& c : AllCases()) checked.insert(c.op);
  for (const auto& [key, entries] : DefaultEnvironment().cpu().kernels().all()) {
    if (entries.front().on_values) continue;  // they move whole tensors
    EXPECT_NE(checked.contains(key.second), NoRow().contains(key.second)) << key.second;
  }
  for (const auto& [op, reason] : NoRow()) {
    const std::string& name = op;
    EXPECT_TRUE(std::any_of(DefaultEnvironment().cpu().kernels().all().begin(),
                            DefaultEnvironment().cpu().kernels().all().end(),
                            [&](const auto& entry) { return entry.first.second == name; }))
        << op;
  }
}

// One operator on x = {2, NaN, 3} (and y = {2, 2, NaN}).
std::vector<double> Apply(const std::string& op, int inputs, Attributes attributes = {}) {
  std::vector<Arg> args(inputs, Real({3}));
  CaseRun run(Case(op, args, std::move(attributes)), DType::kFloat);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  run.Set("x0", {2, nan, 3});
  if (inputs > 1) run.Set("x1", {2, 2, nan});
  return *ToDoubles(run.Results()[0]);
}

TEST(NanRules, Comparisons) {
  EXPECT_THAT(Apply("Equal", 2), ElementsAre(1, 0, 0));
  EXPECT_THAT(Apply("Greater", 2), ElementsAre(0, 0, 0));
  EXPECT_THAT(Apply("GreaterOrEqual", 2), ElementsAre(1, 0, 0));
  EXPECT_THAT(Apply("Less", 2), ElementsAre(0, 0, 0));
  EXPECT_THAT(Apply("LessOrEqual", 2), ElementsAre(1, 0, 0));
  EXPECT_THAT(Apply("IsNaN", 1), ElementsAre(0, 1, 0));
  EXPECT_THAT(Apply("IsInf", 1), ElementsAre(0, 0, 0));
}

// As in NumPy: NaN is the largest number, and the smallest.
TEST(NanRules, Order) {
  EXPECT_THAT(Apply("ArgMax", 1), ElementsAre(1));
  EXPECT_THAT(Apply("ArgMin", 1), ElementsAre(1));
  EXPECT_THAT(Apply("Hardmax", 1), ElementsAre(0, 1, 0));
  EXPECT_THAT(Apply("NonZero", 1), ElementsAre(0, 1, 2));
  const std::vector<double> sorted = Apply("Unique", 1);
  ASSERT_EQ(sorted.size(), 3u);
  EXPECT_TRUE(std::isnan(sorted[2]));
  CaseRun top(Case("TopK", {Real({3}), Ints({1})}).Outputs(2, {0}), DType::kFloat);
  top.Set("x0", {2, std::numeric_limits<double>::quiet_NaN(), 3});
  EXPECT_TRUE(std::isnan(ToDoubles(top.Results()[0])->front()));
}

}  // namespace onward::nan_test
