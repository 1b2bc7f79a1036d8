// SPDX-License-Identifier: Apache-2.0
// 20 steps beside the framework that a file was exported from, without a flag: what trains there
// has to train here, and nothing else. The folder exporters holds the files, their batches and
// the curves, with the scripts that made them.
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "data/arrays/npy.h"
#include "environment/environment.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/test_environment.h"
#include "training_info/author.h"
#include "training_info/step.h"

namespace onward::exporters_test {

constexpr double kTolerance = 1e-4;

std::string Folder() {
  const char* other = std::getenv("ONWARD_EXPORTERS");  // to try more files than are kept
  return other != nullptr ? other : GoldenFolder() + "/exporters";
}

// MODEL.json: {"loss": LOSS, OPTIMIZER: [losses], ...}; neither names nor texts hold a '"'.
struct Curves {
  std::string loss;
  std::vector<std::pair<std::string, std::vector<double>>> by_optimizer;
};
Curves ReadCurves(const std::string& path) {
  Curves curves;
  const std::vector<std::string> parts = absl::StrSplit(FileBytes(path), '"');
  for (size_t i = 1; i + 1 < parts.size(); i += 2) {
    if (parts[i] == "loss") {
      curves.loss = parts[i + 2];
      i += 2;
    } else if (absl::StrContains(parts[i + 1], '[')) {
      const size_t begin = parts[i + 1].find('[') + 1;
      curves.by_optimizer.push_back({parts[i], {}});
      for (absl::string_view number :
           absl::StrSplit(parts[i + 1].substr(begin, parts[i + 1].find(']') - begin), ',')) {
        double value = NAN;
        EXPECT_TRUE(absl::SimpleAtod(number, &value)) << number;
        curves.by_optimizer.back().second.push_back(value);
      }
    }
  }
  return curves;
}

class Exporters : public testing::TestWithParam<std::string> {};

TEST_P(Exporters, AreFollowedWithoutAFlag) {
  const std::string stem = Folder() + "/" + std::string(GetParam().substr(0, GetParam().find('.')));
  const Curves curves = ReadCurves(stem + ".json");
  ASSERT_FALSE(curves.by_optimizer.empty());
  for (const auto& [optimizer, expected] : curves.by_optimizer) {
    AuthorOptions options;
    options.loss = ParseLoss(curves.loss).value();
    options.optimizer = ParseOptimizer(optimizer).value();
    auto made = MakeTrainable(ReadModel(Folder() + "/" + GetParam() + ".onnx").value(), options,
                              DefaultEnvironment());
    ASSERT_TRUE(made.ok()) << made.status();
    std::string notes;
    for (const std::string& note : made->notes) notes += note + "\n";
    auto training = TrainingModel::Create(std::move(made->model), TestEnvironment());
    ASSERT_TRUE(training.ok()) << training.status();
    const std::string input = (*training)->spec().inference.FeedInputs().at(0).name;
    const TensorMap feeds = {
        {input, ReadNpy(stem + ".x.npy").value()},
        {(*training)->model().Metadata(kMetaLabel), ReadNpy(stem + ".y.npy").value()}};
    for (size_t i = 0; i < expected.size(); ++i) {
      auto out = (*training)->Step(feeds, {"loss"});
      ASSERT_TRUE(out.ok()) << out.status();
      const double loss = *out->at("loss").data<float>();
      ASSERT_NEAR(loss, expected[i], kTolerance * std::abs(expected[i]))
          << optimizer << ", step " << i << "\n"
          << notes;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Exporters, testing::ValuesIn(NamesOfFiles(Folder(), ".onnx")),
                         [](const auto& info) {
                           return absl::StrReplaceAll(info.param, {{".", "_"}, {"-", "_"}});
                         });

}  // namespace onward::exporters_test
