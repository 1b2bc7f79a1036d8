// SPDX-License-Identifier: Apache-2.0
// Models that take raw rows, as onnxruntime has run them (raw.py): the export is still the one
// that was run, and the same rows give the same here, from the prepared model and the raw one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/onnx_io/model.h"
#include "data/dataset.h"
#include "environment/environment.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/structure.h"
#include "trainer/prepare/stored.h"
#include "trainer/run/feeding.h"
#include "training_info/lower.h"

namespace onward::raw_test {

constexpr double kTolerance = 1e-5;

std::string Folder() { return GoldenFolder() + "/raw/"; }

// What raw.py exports each with.
const std::map<std::string, std::string>& Flags() {
  static const auto* const flags =
      new std::map<std::string, std::string>{{"classes", "--raw columns --names"},
                                             {"matrix", "--raw matrix --names"},
                                             {"codes", "--raw columns"},
                                             {"number", "--raw columns"}};
  return *flags;
}

using Expected = std::map<std::string, std::vector<std::string>>;  // values by output

Expected ExpectedOf(const std::string& name) {
  Expected expected;
  std::ifstream file(Folder() + name + ".txt");
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    expected[words[0]].assign(words.begin() + 3, words.end());
  }
  return expected;
}

// The outputs of a model on the rows, in text.
TensorMap OutputsOf(const std::string& path) {
  const Model model = ReadModel(path).value();
  const Preparation preparation = StoredPreparation(model).value();
  DataContext context{.preparation = &preparation, .labels_optional = true};
  // Numbers come as a matrix, too, where the model takes them so.
  const auto data = ParseDataSpec("csv:" + Folder() + "rows.csv", Split::kTest, context).value();
  Graph graph = RunnableGraph(model, DefaultEnvironment()).value();
  const auto feeding = Feeding::Create(*data, graph.FeedInputs(), "");
  EXPECT_TRUE(feeding.ok()) << feeding.status();
  std::vector<Tensor> batch;
  EXPECT_TRUE(data->Fill({0, 1, 2, 3, 4}, &batch).ok());
  CompileOptions options = DefaultEnvironment().compile_options();
  Session session(std::move(graph), std::move(options));
  auto outputs = session.Run(feeding->Feeds(batch).value(), nullptr, {});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.ok() ? *outputs : TensorMap();
}

class RawExport : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const CommandResult r =
        RunOnward(BuiltProgram(), absl::StrCat("export ", Folder(), GetParam(), ".onnx -o ", raw_,
                                               " ", Flags().at(GetParam())));
    ASSERT_EQ(r.exit_code, 0) << r.errors;
  }
  Scratch scratch_;
  std::string raw_ = scratch_.Path("raw.onnx");
};

TEST_P(RawExport, IsTheOneThatOnnxruntimeRan) {
  const auto structure = [](const std::string& file) {
    return StructureOf(InferenceGraph(ReadModel(file).value()).value());
  };
  EXPECT_EQ(structure(raw_), structure(absl::StrCat(Folder(), GetParam(), ".raw.onnx")))
      << "the export has changed: run tests/golden/raw.py write again (its head says how)";
}

TEST_P(RawExport, GivesWhatOnnxruntimeGave) {
  const TensorMap outputs = OutputsOf(raw_);
  const Expected expected = ExpectedOf(GetParam());
  ASSERT_FALSE(expected.empty());
  for (const auto& [name, values] : expected) {
    ASSERT_TRUE(outputs.contains(name)) << name;
    const Tensor& got = outputs.at(name);
    ASSERT_EQ(got.elements(), static_cast<int64_t>(values.size())) << name;
    for (size_t i = 0; i < values.size(); ++i) {
      if (got.dtype() == DType::kString) {
        EXPECT_EQ(got.data<std::string>()[i], values[i]) << name << " " << i;
        continue;
      }
      double value = 0;
      ASSERT_TRUE(absl::SimpleAtod(values[i], &value));
      EXPECT_NEAR(got.data<float>()[i], value, kTolerance * std::max(1.0, std::abs(value)))
          << name << " " << i;
    }
  }
}

// The reader prepares rows as the nodes do, to the bit.
TEST_P(RawExport, GivesWhatThePreparedModelGives) {
  if (GetParam() == "number") GTEST_SKIP() << "its output is in other units";
  // Unknown towns are "other", so nothing is refused.
  const Tensor prepared = OutputsOf(absl::StrCat(Folder(), GetParam(), ".onnx")).at("y");
  const Tensor raw = OutputsOf(raw_).at("y");
  EXPECT_EQ(*ToDoubles(prepared), *ToDoubles(raw));
}

INSTANTIATE_TEST_SUITE_P(Models, RawExport, testing::Values("classes", "matrix", "codes", "number"),
                         [](const auto& info) { return info.param; });

TEST(RawExports, RunInOnnxruntime) {
  const char* python = std::getenv("ONWARD_ORT_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "ONWARD_ORT_PYTHON names no Python with onnxruntime";
  const std::string line =
      absl::StrCat(python, " ", GoldenFolder(), "/raw.py check --onward ", BuiltProgram());
  EXPECT_EQ(std::system(line.c_str()), 0) << line;
}

}  // namespace onward::raw_test
