// SPDX-License-Identifier: Apache-2.0
// Steps that `export --portable-step` writes run in onnxruntime and give the same weights. The
// folder portable holds models, the steps that onnxruntime ran, and the weights that it gave
// (portable.py). A step that is exported now has to be the one that was run; where there is a
// Python with onnxruntime, it is run again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "environment/environment.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/plain_step.h"
#include "tests/support/scratch.h"
#include "tests/support/structure.h"
#include "tests/support/tensor_text.h"
#include "training_info/step.h"

namespace onward::portable_test {

constexpr double kTolerance = 1e-5;  // of the largest value, which counts as 1 at least
std::string Folder() { return GoldenFolder() + "/portable/"; }

struct PortableCase {
  std::string arguments;  // none: the file carries its training
  int steps = 2;
  TensorMap feeds, weights;
};

PortableCase CaseNamed(const std::string& name) {
  PortableCase found;
  std::ifstream file(Folder() + name + ".txt");
  for (std::string line; std::getline(file, line);) {
    const Words words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words[0] == "arguments") found.arguments = line.substr(words[0].size() + 1);
    if (words[0] == "steps") found.steps = std::atoi(words[1].c_str());
    if (words[0] == "feed") found.feeds[words[1]] = TensorIn(absl::MakeSpan(words).subspan(2));
    if (words[0] == "weight") found.weights[words[1]] = TensorIn(absl::MakeSpan(words).subspan(2));
  }
  return found;
}

void ExpectNear(const Tensor& actual, const Tensor& expected, const std::string& name) {
  ASSERT_EQ(actual.dtype(), expected.dtype()) << name;
  ASSERT_EQ(actual.shape(), expected.shape()) << name;
  const std::vector<double> a = *ToDoubles(actual), e = *ToDoubles(expected);
  double scale = 1;
  for (const double v : e) scale = std::max(scale, std::abs(v));
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_LE(std::abs(a[i] - e[i]), kTolerance * scale) << name << ", element " << i;
  }
}

class PortableStep : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::string model = absl::StrCat(Folder(), GetParam(), ".onnx");
    if (case_.arguments.empty()) {
      trainable_ = model;
    } else {
      Must(absl::StrCat("make-trainable ", model, " -o ", trainable_, " ", case_.arguments));
    }
    Must(absl::StrCat("export ", trainable_, " --portable-step -o ", step_));
    ASSERT_FALSE(case_.weights.empty());
  }
  static void Must(const std::string& line) {
    const CommandResult result = RunOnward(BuiltProgram(), line);
    ASSERT_EQ(result.exit_code, 0) << line << "\n" << result.errors;
  }

  Scratch scratch_;
  PortableCase case_ = CaseNamed(GetParam());
  std::string trainable_ = scratch_.Path("trainable.onnx"), step_ = scratch_.Path("step.onnx");
};

TEST_P(PortableStep, IsTheOneThatOnnxruntimeRan) {
  const auto structure = [](const std::string& file) {
    return StructureOf(InferenceGraph(ReadModel(file).value()).value());
  };
  EXPECT_EQ(structure(step_), structure(absl::StrCat(Folder(), GetParam(), ".step.onnx")))
      << "the export has changed: run tests/golden/portable.py write again (its head says how)";
}

TEST_P(PortableStep, GivesTheWeightsThatOnnxruntimeGave) {
  auto training = TrainingModel::Create(ReadModel(trainable_).value(), DefaultEnvironment());
  ASSERT_TRUE(training.ok()) << training.status();
  for (int i = 0; i < case_.steps; ++i) {
    const auto stepped = (*training)->Step(case_.feeds, {});
    ASSERT_TRUE(stepped.ok()) << stepped.status();
  }
  for (const auto& [name, expected] : case_.weights) {
    ExpectNear((*training)->variables().at(name), expected, name);
  }
}

TEST_P(PortableStep, IsAnOrdinaryModelHere) {
  auto plain = PlainStep::Create(ReadModel(step_).value());
  ASSERT_TRUE(plain.ok()) << plain.status();
  for (int i = 0; i < case_.steps; ++i) {
    const auto out = plain->Run(ToValues(case_.feeds));
    ASSERT_TRUE(out.ok()) << out.status();
  }
  for (const auto& [name, expected] : case_.weights) {
    ExpectNear(plain->state().at(name), expected, name);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PortableStep, testing::ValuesIn(NamesOfFiles(Folder(), ".txt")),
                         [](const auto& info) { return info.param; });

TEST(PortableStepInOnnxruntime, GivesTheSameWeights) {
  const std::string python = OnnxruntimePython();
  if (python.empty()) {
    GTEST_SKIP() << "no Python with onnxruntime: name one in ONWARD_ORT_PYTHON; the figures that "
                    "onnxruntime gave are compared all the same";
  }
  const CommandResult ran = RunOnward(
      python, absl::StrCat(GoldenFolder(), "/portable.py check --onward ", BuiltProgram()));
  EXPECT_EQ(ran.exit_code, 0) << ran.output << ran.errors;
}

}  // namespace onward::portable_test
