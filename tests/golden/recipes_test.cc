// SPDX-License-Identifier: Apache-2.0
// 50 steps with each optimizer, loss and schedule beside PyTorch: recipes.txt holds its figures
// (make_recipes.py), which come from sines that are made again here.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/runtime/session.h"
#include "tests/support/paths.h"
#include "tests/support/test_environment.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"

namespace onward::recipes_test {

constexpr int kSteps = 50;
constexpr double kInDouble = 1e-5, kInFloat = 1e-3;

double NumberIn(absl::string_view word) {
  double value = NAN;
  EXPECT_TRUE(absl::SimpleAtod(word, &value)) << word;
  return value;
}

struct RecipeCase {
  std::string kind, what;  // "optimizer", "adamax:lr=0.02"
  std::vector<double> figures;
};

void PrintTo(const RecipeCase& c, std::ostream* out) { *out << c.kind << " " << c.what; }

struct Recipes {
  std::vector<int> steps;  // the figures of losses are those of these steps
  std::vector<RecipeCase> cases;
};

Recipes ReadRecipes() {
  Recipes recipes;
  std::ifstream file(GoldenFolder() + "/recipes.txt");
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> halves = absl::StrSplit(line, " | ");
    const std::vector<std::string> words = absl::StrSplit(halves[0], absl::MaxSplits(' ', 1));
    if (words[0] == "steps") {
      for (absl::string_view step : absl::StrSplit(words[1], ' ')) {
        recipes.steps.push_back(static_cast<int>(NumberIn(step)));
      }
    }
    if (halves.size() != 2) continue;
    RecipeCase c{words[0], words[1], {}};
    for (absl::string_view f : absl::StrSplit(halves[1], ' ')) c.figures.push_back(NumberIn(f));
    recipes.cases.push_back(std::move(c));
  }
  return recipes;
}

const Recipes& AllRecipes() {
  static const auto* recipes = new Recipes(ReadRecipes());
  return *recipes;
}

std::vector<RecipeCase> CasesOf(const std::string& kind) {
  std::vector<RecipeCase> cases;
  for (const RecipeCase& c : AllRecipes().cases) {
    if (c.kind == kind) cases.push_back(c);
  }
  return cases;
}

std::string NameOf(const testing::TestParamInfo<RecipeCase>& info) {
  std::string name = absl::StrCat(info.index, "_", info.param.what.substr(0, 40));
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

// The numbers of make_recipes.py.
std::vector<double> Numbers(const std::string& kind, const Shape& shape, int seed) {
  std::vector<double> values;
  for (int64_t k = 0; k < shape.elements(); ++k) {
    const auto i = static_cast<double>(k);
    const double wave = std::sin(1.3 * i + 0.7 * seed);
    const double bit = std::floor(std::fmod(i * 7 + 3, 5) / 3);
    if (kind == "real") values.push_back(wave);
    if (kind == "unit") values.push_back(0.5 + 0.4 * wave);
    if (kind == "count") values.push_back(std::fmod(i, 4));
    if (kind == "bit") values.push_back(bit);
    if (kind == "sign") values.push_back(bit * 2 - 1);
    if (kind == "box") values.push_back(wave * 0.3 + std::floor(std::fmod(i, 4) / 2) * 1.5);
    if (kind == "path") values.push_back(1 + std::fmod(std::floor(i / 2), 2));
    if (kind == "half") values.push_back(std::vector<double>{1, 1, 2, 3, 1, 1}.at(k));
    if (kind == "share") values.push_back(1.1 + wave);
    if (kind.substr(0, 5) == "class")
      values.push_back(std::fmod(i * 7 + 3, NumberIn(kind.substr(5))));
  }
  if (kind != "share") return values;
  const int64_t inner = shape.elements(2, shape.rank()), classes = shape[1];
  std::vector<double> shares = values;
  for (int64_t i = 0; i < shape.elements(); ++i) {
    double sum = 0;
    const int64_t first = i / (inner * classes) * inner * classes + i % inner;
    for (int64_t c = 0; c < classes; ++c) sum += values[first + c * inner];
    shares[i] = values[i] / sum;
  }
  return shares;
}

Tensor TensorOf(DType dtype, const Shape& shape, const std::vector<double>& values) {
  Tensor t(dtype, shape);
  for (int64_t i = 0; i < t.elements(); ++i) {
    if (dtype == DType::kDouble) t.data<double>()[i] = values[i];
    if (dtype == DType::kFloat) t.data<float>()[i] = static_cast<float>(values[i]);
    if (dtype == DType::kInt64) t.data<int64_t>()[i] = static_cast<int64_t>(values[i]);
  }
  return t;
}

Shape ShapeIn(absl::string_view text) {
  Shape shape;
  for (absl::string_view dim : absl::StrSplit(text, 'x')) {
    shape.push_back(static_cast<int64_t>(NumberIn(dim)));
  }
  return shape;
}

// float[2, 3]
std::string TypeText(DType dtype, const Shape& shape) {
  return absl::StrCat(DTypeName(dtype), "[", absl::StrJoin(shape.dims(), ","), "]");
}

// float[2, 3] NAME = {..}
std::string InitializerText(DType dtype, const std::string& name, const Shape& shape,
                            const std::vector<double>& values) {
  std::vector<std::string> numbers;
  for (const double v : values) {
    char text[40];
    std::snprintf(text, sizeof(text), "%.17g", v);
    numbers.emplace_back(text);
  }
  return absl::StrCat(TypeText(dtype, shape), " ", name, " = {", absl::StrJoin(numbers, ","), "}");
}

std::vector<double> LossesOf(const Model& model, const AuthorOptions& options,
                             const TensorMap& feeds) {
  std::vector<double> losses;
  auto made = MakeTrainable(model, options, DefaultEnvironment());
  EXPECT_TRUE(made.ok()) << made.status();
  if (!made.ok()) return losses;
  auto training = Open(Reread(made->model));
  for (int i = 0; i < kSteps; ++i) {
    auto out = training->Step(feeds, {"loss"});
    EXPECT_TRUE(out.ok()) << out.status();
    if (!out.ok()) return losses;
    losses.push_back(Values(out->at("loss"))[0]);
  }
  return losses;
}

void ExpectFigures(const RecipeCase& c, const std::vector<double>& ours, double tolerance) {
  ASSERT_EQ(ours.size(), static_cast<size_t>(kSteps));
  ASSERT_EQ(c.figures.size(), AllRecipes().steps.size());
  for (size_t k = 0; k < c.figures.size(); ++k) {
    const int step = AllRecipes().steps[k];
    // What is left of a loss that has been learned is compared with a part of the first.
    const double scale = std::max(std::abs(c.figures[k]), 1e-3 * std::abs(c.figures[0]));
    EXPECT_NEAR(ours[step], c.figures[k], tolerance * scale) << "step " << step;
  }
}

class Optimizers : public testing::TestWithParam<RecipeCase> {
 protected:
  static std::vector<double> Losses(const std::string& optimizer, DType dtype) {
    const auto weight = [&](const char* name, const Shape& shape, int seed) {
      return InitializerText(dtype, name, shape, Numbers("real", shape, seed));
    };
    const Model model = TextModel(absl::StrCat(
        "m (", TypeText(dtype, {6, 3}), " x) => (", TypeText(dtype, {6, 2}), " y) <",
        weight("W1", {3, 5}, 0), ", ", weight("b1", {5}, 1), ", ", weight("W2", {5, 2}, 2), ", ",
        weight("b2", {2}, 3),
        "> { p = MatMul(x, W1) q = Add(p, b1) h = Tanh(q) r = MatMul(h, W2) y = Add(r, b2) }"));
    AuthorOptions options;
    options.loss = {"mse", {}};
    options.optimizer = ParseOptimizer(optimizer).value();
    return LossesOf(model, options,
                    {{"x", TensorOf(dtype, {6, 3}, Numbers("real", {6, 3}, 10))},
                     {"label", TensorOf(dtype, {6, 2}, Numbers("real", {6, 2}, 11))}});
  }
};

TEST_P(Optimizers, FollowPyTorchInDouble) {
  ExpectFigures(GetParam(), Losses(GetParam().what, DType::kDouble), kInDouble);
}

TEST_P(Optimizers, FollowPyTorchInFloat) {
  ExpectFigures(GetParam(), Losses(GetParam().what, DType::kFloat), kInFloat);
}

INSTANTIATE_TEST_SUITE_P(Recipes, Optimizers, testing::ValuesIn(CasesOf("optimizer")), NameOf);

TEST(Recipes, EveryOptimizerLossAndScheduleHasFigures) {
  const auto names = [](const std::string& kind, size_t word) {
    std::set<std::string> found;
    for (const RecipeCase& c : CasesOf(kind)) {
      const std::vector<std::string> words = absl::StrSplit(c.what, ' ');
      found.insert(words[word].substr(0, words[word].find(':')));
    }
    return std::vector<std::string>(found.begin(), found.end());
  };
  EXPECT_EQ(names("optimizer", 0), OptimizerNames());
  EXPECT_EQ(names("schedule", 1), ScheduleNames());
  EXPECT_EQ(names("loss", 0), LossNames());
}

class ScheduleFigures : public testing::TestWithParam<RecipeCase> {};

TEST_P(ScheduleFigures, FollowPyTorch) {
  const std::vector<std::string> words = absl::StrSplit(GetParam().what, ' ');
  const auto spec = ParseSchedule(words[1]);
  ASSERT_TRUE(spec.ok()) << spec.status();
  Graph graph;
  graph.opsets[""] = kCanonicalOpset;
  GraphBuilder b(&graph, &DefaultEnvironment().operators());
  const Expr step = b.Input("T", ValueType::Of(DType::kInt64, {}));
  b.Output(b.Named(BuildSchedule(b, *spec, NumberIn(words[0]), step, DType::kDouble), "rate"));
  ASSERT_TRUE(b.status().ok()) << b.status();
  CompileOptions options = TestEnvironment().compile_options();
  Session session(graph, options);
  ASSERT_EQ(GetParam().figures.size(), static_cast<size_t>(kSteps));
  for (int t = 0; t < kSteps; ++t) {
    auto out = session.Run({{"T", Tensor::Scalar<int64_t>(t)}}, nullptr);
    ASSERT_TRUE(out.ok()) << out.status();
    const double expected = GetParam().figures[t];
    EXPECT_NEAR(Values(out->at("rate"))[0], expected, 1e-10 + 1e-9 * expected) << "step " << t;
  }
}

INSTANTIATE_TEST_SUITE_P(Recipes, ScheduleFigures, testing::ValuesIn(CasesOf("schedule")), NameOf);

class LossFigures : public testing::TestWithParam<RecipeCase> {
 protected:
  static std::vector<double> Losses(const std::string& text, DType dtype) {
    const std::vector<std::string> parts = absl::StrSplit(text, " ; ");
    std::vector<std::string> inputs, outputs, weights, nodes, compared;
    TensorMap feeds;
    for (size_t k = 1; k < parts.size(); ++k) {
      const std::vector<std::string> words = absl::StrSplit(parts[k], ' ');
      if (words[1] == "none") continue;
      const Shape shape = ShapeIn(words[2]);
      // Seeds count the parts behind the first.
      const int seed = static_cast<int>(k) - 1;
      const bool classes =
          words[1].substr(0, 5) == "class" || words[1] == "path" || words[1] == "half";
      const Tensor values =
          TensorOf(classes ? DType::kInt64 : dtype, shape, Numbers(words[1], shape, seed));
      if (words[0] == "label") {
        feeds["label"] = values;
        continue;
      }
      std::vector<double> start = Numbers("real", shape, 20 + seed);
      for (double& w : start) w *= 0.1;
      inputs.push_back(absl::StrCat(TypeText(dtype, shape), " x", k));
      outputs.push_back(absl::StrCat(TypeText(dtype, shape), " y", k));
      weights.push_back(InitializerText(dtype, absl::StrCat("W", k), shape, start));
      nodes.push_back(absl::StrCat("s", k, " = Add(x", k, ", W", k, ") y", k, " = ",
                                   Transform(words[3]), "(s", k, ")"));
      compared.push_back(absl::StrCat("y", k));
      feeds[absl::StrCat("x", k)] = values;
    }
    const Model model = TextModel(
        absl::StrCat("m (", absl::StrJoin(inputs, ", "), ") => (", absl::StrJoin(outputs, ", "),
                     ") <", absl::StrJoin(weights, ", "), "> { ", absl::StrJoin(nodes, " "), " }"));
    AuthorOptions options;
    options.losses = {
        ParseLossTerm(absl::StrCat(parts[0], "@", absl::StrJoin(compared, ","))).value()};
    options.optimizer = {"sgd", {{"lr", 0.02}}};
    for (size_t k = 1; k <= compared.size(); ++k) options.train.push_back(absl::StrCat("W", k));
    return LossesOf(model, options, feeds);
  }

  static std::string Transform(const std::string& name) {
    if (name == "sigmoid") return "Sigmoid";
    if (name == "softplus") return "Softplus";
    if (name == "softmax") return "Softmax <axis = 1>";
    if (name == "logsoftmax") return "LogSoftmax <axis = 1>";
    return "Identity";
  }
};

TEST_P(LossFigures, FollowPyTorchInDouble) {
  ExpectFigures(GetParam(), Losses(GetParam().what, DType::kDouble), kInDouble);
}

TEST_P(LossFigures, FollowPyTorchInFloat) {
  ExpectFigures(GetParam(), Losses(GetParam().what, DType::kFloat), kInFloat);
}

INSTANTIATE_TEST_SUITE_P(Recipes, LossFigures, testing::ValuesIn(CasesOf("loss")), NameOf);

}  // namespace onward::recipes_test
