// SPDX-License-Identifier: Apache-2.0
// Each kind of finding, by a model or a data set that has it, and runs that have none.
#include "trainer/doctor/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/trainer/doctor_cases.h"
#include "trainer/doctor/checks.h"

namespace onward::doctor_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Three places look at each other. What is added to all keys changes no score against another, so
// that its gradient is zero but for rounding; here it has two axes.
std::string Attention() {
  return "g (float[N, 3] x) => (float[N, 3] y) <float[1, 2] wq = {0.5, -0.4}, float[1, 2] wk = "
         "{0.3, 0.6}, float[1, 2] bk = {0.1, 0.2}, float[1, 2] wv = {0.4, 0.5}, float[6, 3] wo = "
         "{0.1, 0.2, -0.3, 0.4, -0.1, 0.2, 0.3, 0.1, -0.2, -0.4, 0.2, 0.1, 0.3, -0.2, 0.4, 0.1, "
         "0.2, -0.1}, float[3, 3] w = {0.1, 0.2, -0.1, 0.2, -0.3, 0.1, 0.3, 0.1, 0.2}, int64[3] "
         "deep = {0, 3, 1}, int64[2] flat = {0, 6}> { s = Reshape(x, deep) q = MatMul(s, wq) j = "
         "MatMul(s, wk) k = Add(j, bk) t = Transpose <perm = [0, 2, 1]> (k) a = MatMul(q, t) p = "
         "Softmax(a) v = MatMul(s, wv) c = MatMul(p, v) f = Reshape(c, flat) z = MatMul(f, wo) o = "
         "MatMul(x, w) y = Add(z, o) }";
}

class Healthy : public testing::TestWithParam<Case> {};

TEST_P(Healthy, HasNoFindings) {
  const auto report = Examined(GetParam());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(Ids(*report), IsEmpty()) << Text(*report);
  EXPECT_EQ(report->not_examined, "");
  ASSERT_EQ(report->trials.size(), 1u);
  EXPECT_EQ(report->trials[0].losses.size(), 50u);
}

std::vector<Case> HealthyCases() {
  // Pixels that the model scales itself, and a head that begins with zeros.
  return {{.name = "Classes", .model = Net()},
          {.name = "ScalesItself",
           .model = Net("0.1, 0.1, 0.1, 0.1", "f = Mul(x, scale)"),
           .x = [](int64_t i, int64_t c) { return 120 * Telling(i, c); }},
          // What is left of the layer learns.
          {.name = "HalfDead", .model = Net("0.1, -100, 0.1, -100")},
          {.name = "MostlyDead", .model = Wide(10, 8)},
          // As the border of a picture is, where it is flat.
          {.name = "QuietColumn",
           .model = Net(),
           .x = [](int64_t i, int64_t c) { return (c == 2 ? 1e-4 : 1) * Telling(i, c); }},
          {.name = "ChosenProbabilities",
           .model = Net("0.1, 0.1, 0.1, 0.1", "f = Identity(x)", "y = Softmax(z)"),
           .loss = "cross_entropy:logits=probabilities"},
          {.name = "ZeroWeights",
           .model = "g (float[N, 3] x) => (float[N, 3] y) <float[3, 3] w = {0, 0, 0, 0, 0, 0, 0, "
                    "0, 0}> { y = MatMul(x, w) }"},
          {.name = "LabelsFromOneAreNames",
           .model = Net(),
           .label = [](int64_t i) { return 1 + i % 3; }},
          {.name = "KeyBias", .model = Attention()},
          Regression("Numbers", "sgd:lr=0.1"),
          // A schedule is no reason: the rate is looked at by itself.
          Regression("Adam", "adamw:lr=0.05")};
}

std::string NameOf(const testing::TestParamInfo<Case>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Runs, Healthy, testing::ValuesIn(HealthyCases()), NameOf);

class Found : public testing::TestWithParam<Case> {};

TEST_P(Found, WithItsNumberPlaceAndHelp) {
  const Case& c = GetParam();
  const auto report = Examined(c);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_THAT(Ids(*report), Contains(c.id)) << Text(*report);
  for (const DoctorFinding& f : report->findings) {
    EXPECT_NE(f.place, "");
    EXPECT_NE(f.what, "");
    EXPECT_NE(f.help, "");
    if (f.id == c.id) {
      EXPECT_THAT(absl::StrCat(f.place, " | ", f.what, " | ", f.help), HasSubstr(c.words));
    }
  }
}

// Sigmoids hand on a quarter at most, small weights a tenth of it.
std::string DeepSigmoids() {
  std::string weights, nodes, last = "x";
  for (int k = 0; k < 8; ++k) {
    absl::StrAppend(&weights, k == 0 ? "" : ", ", "float[3, 3] w", k,
                    " = {0.1, 0.05, 0.02, 0.03, 0.1, 0.04, 0.05, 0.02, 0.1}");
    absl::StrAppend(&nodes, " a", k, " = MatMul(", last, ", w", k, ") s", k, " = Sigmoid(a", k,
                    ")");
    last = absl::StrCat("s", k);
  }
  return absl::StrCat("g (float[N, 3] x) => (float[N, 3] y) <", weights, "> {", nodes,
                      " y = Identity(", last, ") }");
}

std::vector<Case> InputCases() {
  return {{.name = "Pixels",
           .model = Net(),
           .x = [](int64_t i, int64_t c) { return 160 * Telling(i, c); },
           .id = "input-scale",
           .words = "input 'x'"},
          {.name = "CloseTogether",
           .model = Net(),
           .x = [](int64_t i, int64_t c) { return 1e-5 * Telling(i, c); },
           .id = "input-scale",
           .words = "too close together"},
          {.name = "ConstantInput",
           .model = Net(),
           .x = [](int64_t, int64_t) { return 1.0; },
           .id = "input-constant",
           .words = "every number is 1"},
          {.name = "NotFinite",
           .model = Net(),
           .x = [](int64_t i, int64_t c) { return i == 5 && c == 1 ? kNaN : Telling(i, c); },
           .id = "input-not-finite",
           .words = "1 of 192 numbers"},
          {.name = "UnevenColumns",
           .model = Net(),
           .x = [](int64_t i, int64_t c) { return (c == 2 ? 1e4 : 1) * Telling(i, c); },
           .id = "input-columns",
           .words = "column 2 has a deviation of"}};
}

std::vector<Case> LabelCases() {
  Case one = {.name = "OneClass", .model = Net(), .label = [](int64_t) { return int64_t{1}; }};
  one.id = "label-one-class";
  one.words = "all 64 labels are 1";
  Case constant = Regression("ConstantLabels", "sgd:lr=0.1", "label-constant", "every label is 3");
  constant.number = [](int64_t, int64_t) { return 3.0; };
  Case large = Regression("LargeLabels", "sgd:lr=0.1", "label-scale", "larger unit");
  large.number = [](int64_t i, int64_t c) { return 200000 + 1000 * Sum(i, c); };
  Case missing = Regression("MissingLabels", "sgd:lr=0.1", "label-not-finite", "1 of 64");
  missing.number = [](int64_t i, int64_t c) { return i == 9 ? kNaN : Sum(i, c); };
  Case yes = Regression("NoYes", "sgd:lr=0.1", "label-binary", "yes as 1");
  yes.loss = "bce";
  yes.number = [](int64_t i, int64_t) { return i % 2 == 0 ? -1.0 : 1.0; };
  return {{.name = "OutOfRange",
           .model = Net(),
           .label = [](int64_t i) { return i % 9 == 0 ? 7 : i % 3; },
           .id = "label-range",
           .words = "labels are 0 to 7, output 'y' tells 3 classes apart, 0 to 2 | --head 8"},
          {.name = "ShiftedByOne",
           .model = Net(),
           .label = [](int64_t i) { return i % 2 == 0 ? 1 : 3; },
           .id = "label-shifted",
           .words = "count the labels from 0"},
          {.name = "OneSided",
           .model = Net(),
           .label = [](int64_t i) { return i < 2 ? i : 2; },
           .id = "label-imbalance",
           .words = "balance=1"},
          one,
          constant,
          large,
          missing,
          yes};
}

std::vector<Case> ModelCases() {
  return {
      {.name = "HalfDeadAndStuck",
       .model = Net("0.1, -100, 0.1, -100"),
       .x = [](int64_t i, int64_t c) { return static_cast<double>((i * 7 + c * 5) % 11) / 10; },
       .label = [](int64_t i) { return (i * i / 5 + i / 7) % 3; },
       .id = "dead-units",
       .words = "node 'hidden' (Relu) | 2 of 4 units are zero for every example of 2 batches"},
      {.name = "AllButOneDead", .model = Wide(10, 9), .id = "dead-units", .words = "9 of 10 units"},
      {.name = "AllDead",
       .model = Net("-100, -100, -100, -100"),
       .id = "no-gradient",
       .words = "2 of 3 trained weights"},
      {.name = "AllDeadIsConstant",
       .model = Net("-100, -100, -100, -100"),
       .id = "constant-output",
       .words = "output 'y' | it is the same for all 32 examples"},
      {.name = "Vanishing",
       .model = DeepSigmoids(),
       .optimizer = "sgd:lr=0.01",
       .id = "vanishing-gradients",
       .words = "weight 'w0'"},
      {.name = "Exploding",
       .model = "g (float[N, 2] x) => (float[N, 1] y) <float[2, 2] u = {90, 10, 20, 80}, "
                "float[2, 2] v = {70, 10, 30, 60}, float[2, 1] w = {90, 80}> { a = MatMul(x, "
                "u) b = MatMul(a, v) y = MatMul(b, w) }",
       .loss = "mse",
       .optimizer = "sgd:lr=0.1",
       .x = Small,
       .number = Sum,
       .columns = 2,
       .id = "exploding-gradients",
       .words = "--clip-norm 1"},
      {.name = "ProbabilitiesAsLogits",
       .model = Net("0.1, 0.1, 0.1, 0.1", "f = Identity(x)", "y = Softmax(z)"),
       .id = "probabilities-as-logits",
       .words = "output 'y' | its scores are probabilities already"},
      {.name = "LogitsAsProbabilities",
       .model = Net(),
       .loss = "cross_entropy:logits=probabilities",
       .id = "logits-as-probabilities",
       .words = "--loss cross_entropy:logits=logits"}};
}

std::vector<Case> LearningCases() {
  return {Regression("TooHigh", "sgd:lr=10", "rate-too-high", "--lr 1"),
          Regression("TooLow", "sgd:lr=3e-5", "rate-too-low", "--lr 0.03"),
          Regression("Zero", "sgd:lr=0", "rate-too-low", "the rate is 0"),
          {.name = "NothingToTellApart",
           .model = Net(),
           .x = [](int64_t, int64_t) { return 1.0; },
           .id = "loss-stuck",
           .words = "no rate from 5e-05 to 5 makes it fall by half"},
          {.name = "FirstStepFails",
           .model = Net(),
           .x = [](int64_t, int64_t c) { return c == 1 ? kNaN : 1.0; },
           .id = "loss-not-finite",
           .words = "the very first step fails"}};
}

INSTANTIATE_TEST_SUITE_P(Inputs, Found, testing::ValuesIn(InputCases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Labels, Found, testing::ValuesIn(LabelCases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Models, Found, testing::ValuesIn(ModelCases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Learning, Found, testing::ValuesIn(LearningCases()), NameOf);

TEST(Doctor, LabelsThatCannotBeFedEndTheExamination) {
  const Case c = LabelCases()[0];
  const auto report = Examined(c);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(Ids(*report), ElementsAre("label-range"));
  EXPECT_THAT(report->not_examined, HasSubstr("--head"));
  EXPECT_THAT(report->trials, IsEmpty());
}

// Units that the steps wake were not dead.
TEST(Doctor, CountsUnitsThatStayDead) {
  const auto found = [](std::vector<double> before, std::vector<double> after, bool learned) {
    Probe first, then;
    first.units = {{.node = "r", .largest = std::move(before)}};
    then.units = {{.node = "r", .largest = std::move(after)}};
    const DoctorFindings findings = UnitFindings(first, then, learned);
    return findings.empty() ? 0 : findings[0].number;
  };
  EXPECT_EQ(found({0, 0, 1, 1}, {0, 0, 1, 1}, false), 0.5);
  EXPECT_EQ(found({0, 0, 1, 1}, {0, 0, 1, 1}, true), 0);
  EXPECT_EQ(found({0, 0, 1, 1}, {0, 2, 1, 1}, false), 0) << "one of them woke";
  EXPECT_EQ(found({0, 0, 1, 1}, {0, 0, 0, 0}, false), 0.5) << "died of the steps alone";
  EXPECT_EQ(found({0, 0, 0, 0}, {0, 0, 0, 0}, true), 1);
  EXPECT_EQ(found({0, 0, 0, 0}, {}, false), 1) << "where there were no steps";
}

// A file whose training counts steps and leaves every weight as it is.
TEST(Doctor, NothingTrains) {
  const Model model = TextModel(
      kLinear, {{.algorithm = "a (float[N, 1] label) => (float loss, int64 steps_new) <int64 steps "
                              "= {0}> { d = Sub(y, label) s = Mul(d, d) loss = ReduceMean "
                              "<keepdims = 0> (s) one = Constant <value = int64 {1}> () steps_new "
                              "= Add(steps, one) }",
                 .update = {{"steps", "steps_new"}}}});
  DoctorOptions options;
  options.run.batch = 32;
  const auto report = Diagnose(model, std::make_shared<Examples>(Filled(2, Small), Filled(1, Sum)),
                               options, TestEnvironment());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(Ids(*report), ElementsAre("nothing-trains")) << Text(*report);
  EXPECT_THAT(report->findings[0].what, HasSubstr("0 of 1 weights"));
}

TEST(Doctor, TriesOtherRatesFromTheSameStart) {
  const auto report = Examined(Regression("TooLow", "sgd:lr=3e-5"));
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->trials.size(), 4u);
  for (const Trial& trial : report->trials) {
    EXPECT_DOUBLE_EQ(trial.first(), report->trials[0].first());
  }
  EXPECT_DOUBLE_EQ(report->trials[3].rate, 0.03);
  EXPECT_LT(report->trials[3].last(), 0.2 * report->trials[0].last());
}

}  // namespace onward::doctor_test
