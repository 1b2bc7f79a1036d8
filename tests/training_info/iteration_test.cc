// SPDX-License-Identifier: Apache-2.0
// Several training entries as one plain model: an iteration of it is an iteration of the
// interpreter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/onnx_io/proto.h"
#include "tests/support/plain_step.h"
#include "tests/support/text_model.h"
#include "training_info/portable_step.h"

namespace onward::iteration_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr int kIterations = 7;

struct Rate {
  int entry, every, phase;
};

struct IterationCase {
  std::string name, graph;
  std::vector<EntryText> entries;
  std::vector<Rate> rates = {};
  std::string done = "";  // iterations, in the metadata
};

void PrintTo(const IterationCase& c, std::ostream* out) { *out << c.name; }

Model ModelOf(const IterationCase& c) {
  Model model = TextModel(c.graph, c.entries);
  for (const Rate& rate : c.rates) {
    onnx::GraphProto* algorithm =
        model.proto().mutable_training_info(rate.entry)->mutable_algorithm();
    for (const auto& [key, value] : {std::pair{kMetaEvery, rate.every}, {kMetaPhase, rate.phase}}) {
      auto* entry = algorithm->add_metadata_props();
      entry->set_key(key);
      entry->set_value(std::to_string(value));
    }
  }
  if (!c.done.empty()) model.SetMetadata(kMetaIteration, c.done);
  return model;
}

PlainStep PlainOf(const Model& model, std::optional<int> entry = std::nullopt) {
  auto step = PortableStep(model, entry, DefaultEnvironment());
  EXPECT_TRUE(step.ok()) << step.status();
  auto plain = PlainStep::Create(*step);
  EXPECT_TRUE(plain.ok()) << plain.status();
  return *std::move(plain);
}

constexpr char kTwo[] =
    "m (float[1] x) => (float[1] y) <float[1] A = {1}, float[1] B = {10}> { y = Mul(x, A) }";

std::vector<IterationCase> Cases() {
  const EntryText adds = {"a0 () => (float[1] A_new) { A_new = Add(A, x) }", {{"A", "A_new"}}};
  const EntryText scales = {"a1 () => (float[1] B_new) { h = Mul(B, A)  B_new = Add(h, y) }",
                            {{"B", "B_new"}}};
  const EntryText learns = {
      R"(a () => (float[1] B_new, float loss) <float rate = {0.01}> {
           d = Sub(B, y)  s = Mul(d, d)  loss = ReduceSum<keepdims = 0>(s)
           g = ai.onnx.preview.training.Gradient <xs = ["B"], y = "loss"> (B)
           r = Mul(rate, g)  B_new = Sub(B, r)
         })",
      {{"B", "B_new"}}};
  const std::vector<EntryText> named_alike = {
      {"a0 () => (float[1] n, float[1] t) { t = Add(A, x)  n = Neg(t) }", {{"A", "n"}}},
      {"a1 () => (float[1] n, float[1] t) { t = Add(B, A)  n = Abs(t) }", {{"B", "n"}}}};
  return {
      {"InOrder", kTwo, {adds, scales}},
      {"NamesOfTheirOwn", kTwo, named_alike},
      {"NamesOfTheirOwnInTurn", kTwo, named_alike, {{1, 2, 1}}},
      {"AConstantThatIsAnInputElsewhere",
       kTwo,
       {{"a0 () => (float[1] n) <float[1] u = {5}, float[1] w = {3}> { n = Sum(A, u, w) }",
         {{"A", "n"}}},
        {"a1 (float[1] u) => (float[1] k) { w = Add(u, A)  k = Sub(B, w) }", {{"B", "k"}}}}},
      {"InitializersAsOutputs",
       kTwo,
       {{"a0 () => (float[1] B, float[1] z) { z = Add(B, A) }", {{"A", "B"}}},
        {"a1 () => (float[1] A, float[1] k) { k = Add(A, x) }", {{"B", "k"}}}}},
      {"AVariableOfAnotherAlgorithm",
       kTwo,
       {{"a0 () => (float[1] n) { n = Add(A, x) }", {{"S", "n"}}},
        {"a1 () => (float[1] k) <float[1] S = {4}> { k = Add(S, B) }", {{"B", "k"}}}}},
      {"ARate", kTwo, {adds, scales}, {{1, 3, 1}}},
      {"RatesThatTakeTurns", kTwo, {adds, scales}, {{0, 2, 0}, {1, 2, 1}}},
      {"GoesOnWhereTheFileStands", kTwo, {adds, scales}, {{1, 3, 1}}, "5"},
      {"AGradientInTurn", kTwo, {adds, learns}, {{1, 2, 0}}},
      {"OneValueForTwoInTurn",
       kTwo,
       {{"a () => (float[1] n) { n = Sum(A, B, x) }", {{"A", "n"}, {"B", "n"}}}},
       {{0, 2, 1}}},
      {"AnInitializerAsOutputInTurn",
       kTwo,
       {{"a0 () => (float[1] n) { n = Add(B, x) }", {{"B", "n"}}},
        {"a1 () => (float[1] B) {}", {{"A", "B"}}}},
       {{1, 2, 1}}},
      {"AnOutputOfBoth",
       kTwo,
       {{"a0 () => (float[1] n, float[1] loss) { n = Add(A, x)  loss = Neg(n) }", {{"A", "n"}}},
        {"a1 () => (float[1] k, float[1] loss) { k = Add(B, A)  loss = Abs(k) }", {{"B", "k"}}}},
       {{1, 3, 0}}},
      {"NamesOfTheCounter",
       "m (float[1] iteration) => (float[1] iteration_next) <float[1] A = {1}> { iteration_next = "
       "Mul(iteration, A) }",
       {{"a () => (float[1] n) { n = Add(A, iteration) }", {{"A", "n"}}}},
       {{0, 2, 0}}},
      {"ASequenceInTurn",
       kTwo,
       {adds,
        {"a1 () => (float[1] k, seq(float[1]) q) { k = Add(B, A)  q = SequenceConstruct(k) }",
         {{"B", "k"}}}},
       {{1, 2, 1}}},
  };
}

class PortableIteration : public testing::TestWithParam<IterationCase> {};

TEST_P(PortableIteration, FollowsTheInterpreter) {
  const Model model = ModelOf(GetParam());
  auto training = Open(model);
  PlainStep plain = PlainOf(model);
  for (int i = 0; i < kIterations; ++i) {
    ValueMap feeds;
    for (const NamedType& in : training->StepInputs()) {
      feeds[in.name] = Floats({0.5f + static_cast<float>(i)});
    }
    const auto ours = training->StepValues(feeds);
    ASSERT_TRUE(ours.ok()) << ours.status();
    const auto theirs = plain.Run(feeds);
    ASSERT_TRUE(theirs.ok()) << theirs.status();
    for (const auto& [name, value] : std::as_const(*training).variables()) {
      EXPECT_EQ(Values(plain.state().at(name)), Values(value)) << name << ", iteration " << i;
    }
    for (const auto& [name, value] : *ours) {
      // What is an initializer, too, cannot be two values of one graph.
      if (!theirs->contains(name) || value.tensor() == nullptr) continue;
      EXPECT_EQ(Values(*theirs->at(name).tensor()), Values(*value.tensor()))
          << name << ", iteration " << i;
    }
  }
}

TEST_P(PortableIteration, IsReadAgain) {
  auto step = PortableStep(ModelOf(GetParam()), std::nullopt, DefaultEnvironment());
  ASSERT_TRUE(step.ok()) << step.status();
  const auto again = PlainStep::Create(Reread(*step));
  EXPECT_TRUE(again.ok()) << again.status();
}

INSTANTIATE_TEST_SUITE_P(Cases, PortableIteration, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

IterationCase Named(const std::string& name) {
  for (const IterationCase& c : Cases()) {
    if (c.name == name) return c;
  }
  return {};
}

TEST(PortableEntries, GiveWhatEntriesBeforeGaveWhenTheyRest) {
  PlainStep both = PlainOf(ModelOf(Named("AnOutputOfBoth")));
  const ValueMap feeds = {{"x", Floats({2})}};
  // Entry 1 takes part in the first iteration: loss = |B + A|.
  EXPECT_THAT(Values(*both.Run(feeds).value().at("loss").tensor()), ElementsAre(13));
  EXPECT_THAT(Values(*both.Run(feeds).value().at("loss").tensor()), ElementsAre(-5));
}

TEST(PortableEntries, GiveNothingOfTheirOwnWhenTheyRest) {
  const Model model = ModelOf(
      {"",
       kTwo,
       {{"a () => (float[1] n) { n = Add(A, x) }", {{"A", "n"}}},
        {R"(b () => (float[1] k, float loss, int64[2, 3] table, string[1] word, seq(float[1]) list,
                    optional(float[1]) perhaps) <int64[2, 3] t = {1, 2, 3, 4, 5, 6}> {
              k = Add(B, A)  loss = ReduceSum<keepdims = 0>(k)  table = Neg(t)
              word = Constant<value_strings = ["a"]>()  list = SequenceConstruct(k)
              perhaps = Optional(k)
            })",
         {{"B", "k"}}}},
       {{1, 2, 0}}});
  PlainStep plain = PlainOf(model);
  auto training = Open(model);
  const ValueMap feeds = {{"x", Floats({2})}};
  const auto theirs = plain.Run(feeds).value();
  EXPECT_EQ(theirs.at("loss").tensor()->shape(), Shape({}));
  EXPECT_EQ(theirs.at("table").tensor()->shape(), (Shape{2, 3}));
  const auto ours = training->StepValues(feeds).value();
  EXPECT_EQ(theirs.at("list").sequence()->items.size(), 1);
  EXPECT_EQ(Values(*theirs.at("perhaps").tensor()), Values(*ours.at("perhaps").tensor()));

  const auto nothing = training->StepValues(feeds).value();
  const auto empty = plain.Run(feeds).value();
  EXPECT_EQ(Values(plain.state().at("B")), ValueOf(*training, "B"));
  for (const char* name : {"loss", "table", "word", "list", "perhaps"}) {
    EXPECT_FALSE(nothing.contains(name)) << name;
  }
  for (const char* name : {"loss", "table", "word"}) {
    EXPECT_EQ(empty.at(name).tensor()->shape(), Shape({0})) << name;
    EXPECT_EQ(empty.at(name).tensor()->dtype(), ours.at(name).tensor()->dtype()) << name;
  }
  EXPECT_TRUE(empty.at("list").sequence()->items.empty());
  EXPECT_TRUE(empty.at("perhaps").empty());
}

TEST(PortableEntries, AreWrittenAloneWhateverTheirRate) {
  const Model model = ModelOf(Named("ARate"));
  auto training = Open(model);
  PlainStep plain = PlainOf(model, 1);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(training->StepEntry(1, {{"x", Floats({2})}}).ok());
    ASSERT_TRUE(plain.Run({{"x", Floats({2})}}).ok());
  }
  EXPECT_EQ(Values(plain.state().at("B")), ValueOf(*training, "B"));
  EXPECT_THAT(plain.updates(), ElementsAre(Pair("B", "B_new")));
}

TEST(PortableEntries, NeedNotBeFedWhatNothingReads) {
  const auto step =
      PortableStep(TextModel("m (float[1] x, float[1] u) => (float[1] y) <float[1] A = {1}> "
                             "{ y = Mul(x, A) unused = Neg(u) }",
                             {{"a () => (float[1] n) { n = Add(A, x) }", {{"A", "n"}}}}),
                   std::nullopt, DefaultEnvironment());
  ASSERT_TRUE(step.ok()) << step.status();
  std::vector<std::string> inputs;
  const Graph graph = InferenceGraph(*step).value();
  for (const NamedType& in : graph.inputs) inputs.push_back(in.name);
  EXPECT_THAT(inputs, ElementsAre("x", "A"));
}

TEST(PortableEntries, ThatAreNotThereAreRefused) {
  const Model two = ModelOf(Named("InOrder"));
  for (const int entry : {-1, 2}) {
    const auto step = PortableStep(two, entry, DefaultEnvironment());
    EXPECT_THAT(step.status().ToString(), HasSubstr("has 2 entries"));
  }
  const auto none = PortableStep(TextModel(kTwo), std::nullopt, DefaultEnvironment());
  EXPECT_THAT(none.status().ToString(), HasSubstr("make-trainable"));
  const auto broken = PortableStep(
      TextModel(kTwo, {{"a () => (float[1] n) { n = Add(A, x) }", {{"A", "n"}, {"Z", "n"}}}}),
      std::nullopt, DefaultEnvironment());
  EXPECT_THAT(broken.status().ToString(), HasSubstr("unknown-key"));
}

}  // namespace onward::iteration_test
