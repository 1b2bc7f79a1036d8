// SPDX-License-Identifier: Apache-2.0
// Models of several kinds on their whole way: made trainable, trained, resumed, exported. The
// folder journeys says which, and what onnxruntime found of the export (journeys.py): `onward eval`
// says the same. Where there is a Python with onnxruntime, it judges again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/json.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/tensor_text.h"

namespace onward::journeys_test {

// Training goes its own way on another CPU, by rounding.
constexpr double kLossTolerance = 2e-3, kAccuracyTolerance = 0.02;

std::string Folder() { return GoldenFolder() + "/journeys/"; }

struct JourneyCase {
  std::string model, data, arguments, batch, steps, first;
  double loss = NAN, accuracy = NAN;
};

// "" where the shared folder is absent.
std::string PlaceOf(const std::string& word) {
  const std::pair<std::string, std::string> shared = absl::StrSplit(word, "shared:");
  if (!absl::StrContains(word, "shared:")) {
    const std::pair<std::string, std::string> spec = absl::StrSplit(word, ':');
    return spec.second.empty() ? Folder() + word
                               : absl::StrCat(spec.first, ":", Folder(), spec.second);
  }
  const std::string root = SharedPath(".");
  return root.empty() ? "" : absl::StrCat(shared.first, root, "/", shared.second);
}

JourneyCase CaseNamed(const std::string& name) {
  JourneyCase found;
  std::ifstream file(absl::StrCat(Folder(), name, ".txt"));
  for (std::string line; std::getline(file, line);) {
    const Words words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words[0] == "model") found.model = PlaceOf(words[1]);
    if (words[0] == "data") found.data = absl::StrCat("'", PlaceOf(words[1]), "'");
    if (words[0] == "arguments") found.arguments = line.substr(words[0].size() + 1);
    if (words[0] == "batch") found.batch = words[1];
    if (words[0] == "steps") {
      found.steps = words[1];
      found.first = words[2];
    }
    if (words[0] == "figures") {
      found.loss = NumberIn(words[1]);
      found.accuracy = NumberIn(words[2]);
    }
  }
  return found;
}

class ModelJourney : public testing::TestWithParam<std::string> {
 protected:
  std::string At(const std::string& name) const { return scratch_.Path(name + ".onnx"); }
  static std::string Must(const std::string& line) {
    const CommandResult result = RunOnward(BuiltProgram(), line);
    EXPECT_EQ(result.exit_code, 0) << line << "\n" << result.errors;
    return result.output;
  }
  double Figure(const std::string& model, const char* name) const {
    const auto json =
        ParseJson(Must(absl::StrCat("eval ", At(model), " --data ", case_.data, " --json")));
    const Json* value = json.ok() ? json->Find(name) : nullptr;
    return value == nullptr ? NAN : value->number();
  }

  const Scratch scratch_;
  const JourneyCase case_ = CaseNamed(GetParam());
};

TEST_P(ModelJourney, EndsWhereOnnxruntimeFoundIt) {
  if (case_.model.empty()) GTEST_SKIP() << "the shared models are absent (ONWARD_SHARED)";
  Must(absl::StrCat("make-trainable ", case_.model, " -o ", At("trainable"), " ", case_.arguments));
  Must("check " + At("trainable"));
  const std::string train =
      absl::StrCat("train ", At("trainable"), " --data ", case_.data, " --quiet ");
  const std::string begin = absl::StrCat(train, "--batch ", case_.batch);
  Must(absl::StrCat(begin, " --steps ", case_.steps, " -o ", At("whole")));
  Must(absl::StrCat(begin, " --steps ", case_.first, " -o ", At("parts")));
  EXPECT_NE(scratch_.Read("whole.onnx"), scratch_.Read("parts.onnx"));
  Must(absl::StrCat(train, "--resume --steps ", case_.steps, " -o ", At("parts")));
  EXPECT_EQ(scratch_.Read("whole.onnx"), scratch_.Read("parts.onnx"));
  Must(absl::StrCat("export ", At("whole"), " -o ", At("plain")));
  Must("check " + At("plain"));
  const double loss = Figure("whole", "loss");
  EXPECT_LT(loss, Figure("trainable", "loss"));
  EXPECT_NEAR(loss, case_.loss, kLossTolerance * std::max(1.0, std::abs(case_.loss)));
  EXPECT_NEAR(Figure("whole", "accuracy"), case_.accuracy, kAccuracyTolerance);
}

INSTANTIATE_TEST_SUITE_P(Models, ModelJourney, testing::ValuesIn(NamesOfFiles(Folder(), ".txt")),
                         [](const auto& info) { return info.param; });

TEST(JourneysInOnnxruntime, ScoreWhatEvalSaid) {
  const std::string python = OnnxruntimePython();
  if (python.empty()) {
    GTEST_SKIP() << "no Python with onnxruntime: name one in ONWARD_ORT_PYTHON; the figures that "
                    "onnxruntime gave are compared all the same";
  }
  const CommandResult ran =
      RunOnward(python, absl::StrCat(GoldenFolder(), "/journeys.py check --onward ", BuiltProgram(),
                                     " --shared '", SharedPath("."), "'"));
  EXPECT_EQ(ran.exit_code, 0) << ran.output << ran.errors;
}

}  // namespace onward::journeys_test
