// SPDX-License-Identifier: Apache-2.0
// Adapters on transformers and others, from the command line to onnxruntime's results for the
// merged file (lora.py), which the folder lora holds.
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
#include "tests/support/scratch.h"
#include "tests/support/tensor_text.h"
#include "training_info/adapters/files.h"
#include "training_info/lower.h"
#include "training_info/step.h"

namespace onward::lora_test {

// Of the largest value, which counts as 1 at least.
constexpr double kTolerance = 1e-5;
// Training goes its own way on another CPU, by rounding.
constexpr double kGoldenTolerance = 1e-4;

struct LoraCase {
  std::string model, arguments, merge;
  int steps = 0;
  TensorMap feeds, outputs;
};

std::string Folder() { return GoldenFolder() + "/lora/"; }

LoraCase CaseNamed(const std::string& name) {
  LoraCase found;
  std::ifstream file(absl::StrCat(Folder(), name, ".txt"));
  for (std::string line; std::getline(file, line);) {
    const Words words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    const std::string rest = line.substr(words[0].size() + 1);
    if (words[0] == "model") {
      constexpr char kShared[] = "shared:";
      found.model = rest.rfind(kShared, 0) == 0 ? SharedPath(rest.substr(sizeof(kShared) - 1))
                                                : absl::StrCat(GoldenFolder(), "/", rest);
    }
    if (words[0] == "arguments") {
      for (size_t i = 1; i < words.size(); ++i)
        absl::StrAppend(&found.arguments, " '", words[i], "'");
    }
    if (words[0] == "steps") found.steps = std::atoi(words[1].c_str());
    if (words[0] == "merge") found.merge = words[1];
    if (words[0] == "feed") found.feeds[words[1]] = TensorIn(absl::MakeSpan(words).subspan(2));
    if (words[0] == "output") found.outputs[words[1]] = TensorIn(absl::MakeSpan(words).subspan(2));
  }
  return found;
}

double Distance(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return INFINITY;
  const std::vector<double> x = *ToDoubles(a), y = *ToDoubles(b);
  double most = 0, scale = 1;
  for (size_t i = 0; i < x.size(); ++i) {
    most = std::max(most, std::abs(x[i] - y[i]));
    scale = std::max(scale, std::abs(y[i]));
  }
  return most / scale;
}

class LoraGolden : public testing::TestWithParam<std::string> {
 protected:
  std::string At(const std::string& name) const { return scratch_.Path(name + ".onnx"); }
  static void Must(const std::string& line) {
    const CommandResult result = RunOnward(BuiltProgram(), line);
    ASSERT_EQ(result.exit_code, 0) << line << "\n" << result.errors;
  }
  TensorMap OutputsOf(const std::string& path) const {
    auto graph = RunnableGraph(ReadModel(path).value(), DefaultEnvironment());
    EXPECT_TRUE(graph.ok()) << graph.status();
    if (!graph.ok()) return {};
    TensorMap feeds;
    for (const auto& [name, value] : case_.feeds) {
      if (graph->IsInput(name)) feeds[name] = value;
    }
    Session session(*std::move(graph), DefaultEnvironment().compile_options());
    auto out = session.Run(feeds, nullptr);
    EXPECT_TRUE(out.ok()) << out.status();
    TensorMap copies;
    for (const auto& [name, value] : *out) copies[name] = value.Clone();
    return copies;
  }

  const Scratch scratch_;
  const LoraCase case_ = CaseNamed(GetParam());
};

TEST_P(LoraGolden, MergedAndAppliedGiveWhatOnnxruntimeGave) {
  if (case_.model.empty()) GTEST_SKIP() << "the shared models are absent (ONWARD_SHARED)";
  Must(absl::StrCat("make-trainable ", case_.model, " -o ", At("trainable"), case_.arguments));
  auto training = TrainingModel::Create(ReadModel(At("trainable")).value(), DefaultEnvironment());
  ASSERT_TRUE(training.ok()) << training.status();
  for (int i = 0; i < case_.steps; ++i) {
    const auto stepped = (*training)->Step(case_.feeds, {});
    ASSERT_TRUE(stepped.ok()) << stepped.status();
  }
  ASSERT_TRUE(WriteModel((*training)->Export().value(), At("trained")).ok());
  // Nothing but adapters (and what --train names) has changed.
  const Graph before = *InferenceGraph(ReadModel(At("trainable")).value());
  const Graph after = *InferenceGraph(ReadModel(At("trained")).value());
  const std::set<std::string> variables = (*training)->spec().StateVariables();
  for (const auto& [name, tensor] : before.initializers) {
    EXPECT_TRUE(variables.contains(name) || Identical(tensor, after.initializers.at(name))) << name;
  }
  EXPECT_FALSE(FindAdapters(after).empty());
  Must(absl::StrCat("export ", At("trained"), " -o ", At("merged"), " --merge ", case_.merge));
  Must(absl::StrCat("export ", At("trained"), " -o ", At("kept"), " --merge none"));
  Must(absl::StrCat("export ", At("trained"), " --adapters ", At("adapters"), " -o ", At("base")));
  Must(absl::StrCat("export ", case_.model, " --apply ", At("adapters"), " -o ", At("applied"),
                    " --merge ", case_.merge));
  const TensorMap merged = OutputsOf(At("merged")), kept = OutputsOf(At("kept")),
                  applied = OutputsOf(At("applied"));
  ASSERT_FALSE(case_.outputs.empty());
  for (const auto& [name, expected] : case_.outputs) {
    EXPECT_LE(Distance(merged.at(name), expected), kGoldenTolerance) << name;
    EXPECT_LE(Distance(kept.at(name), merged.at(name)), kTolerance) << name;
    EXPECT_LE(Distance(applied.at(name), merged.at(name)), kTolerance) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, LoraGolden, testing::ValuesIn(NamesOfFiles(Folder(), ".txt")),
                         [](const auto& info) { return info.param; });

TEST(LoraInOnnxruntime, MergedKeptAndAppliedAgree) {
  const std::string python = OnnxruntimePython();
  if (python.empty()) {
    GTEST_SKIP() << "no Python with onnxruntime: name one in ONWARD_ORT_PYTHON; what onnxruntime "
                    "gave is compared all the same";
  }
  const CommandResult ran =
      RunOnward(python, absl::StrCat(GoldenFolder(), "/lora.py check --onward ", BuiltProgram(),
                                     " --shared '", SharedPath("."), "'"));
  EXPECT_EQ(ran.exit_code, 0) << ran.output << ran.errors;
}

}  // namespace onward::lora_test
