// SPDX-License-Identifier: Apache-2.0
// 20 AdamW steps beside PyTorch. The curves are kept here; the models and
// batches they start from are made by make_curves.py, and ONWARD_GOLDEN names
// the folder they were made in.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "data/arrays/npy.h"
#include "environment/environment.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/test_environment.h"
#include "training_info/author.h"
#include "training_info/step.h"

namespace onward::curves_test {

std::vector<double> Curve(const std::string& json, const std::string& key) {
  std::vector<double> values;
  const size_t at = json.find("\"" + key + "\":");
  if (at == std::string::npos) return values;
  const size_t begin = json.find('[', at) + 1;
  for (absl::string_view part :
       absl::StrSplit(json.substr(begin, json.find(']', begin) - begin), ',')) {
    values.emplace_back();
    EXPECT_TRUE(absl::SimpleAtod(part, &values.back()));
  }
  return values;
}

class Curves : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("ONWARD_GOLDEN");
    if (folder == nullptr ||
        !std::filesystem::exists(std::string(folder) + "/" + GetParam() + ".onnx")) {
      GTEST_SKIP() << "ONWARD_GOLDEN names no folder made by tests/golden/make_curves.py";
    }
    folder_ = folder;
    json_ = FileBytes(GoldenFolder() + "/" + GetParam() + ".json");
  }

  std::vector<double> Losses(const std::string& optimizer) {
    AuthorOptions options;
    options.optimizer = ParseOptimizer(optimizer).value();
    AuthorResult authored = MakeTrainable(ReadModel(folder_ + "/" + GetParam() + ".onnx").value(),
                                          options, DefaultEnvironment())
                                .value();
    auto training = TrainingModel::Create(std::move(authored.model), TestEnvironment()).value();
    const TensorMap feeds = {{"x", ReadNpy(folder_ + "/" + GetParam() + ".x.npy").value()},
                             {"label", ReadNpy(folder_ + "/" + GetParam() + ".y.npy").value()}};
    std::vector<double> losses;
    for (int i = 0; i < 20; ++i)
      losses.push_back(*training->Step(feeds, {"loss"}).value().at("loss").data<float>());
    return losses;
  }

  std::string folder_, json_;
};

// Within 1e-3 of PyTorch, or as near to the exact curve as PyTorch's own float
// run stays (see make_curves.py on why that can be far): at first as far as it has
// strayed, later as far as it strays at all. Where rounding rules, one run is one draw: a
// start that is nudged by the last bit moves the third loss of resnet18_32 by up to 1 %, of
// which PyTorch's run happens to show a tenth. A loss below a thousandth of the first has
// been learned; what is left of it is compared with that thousandth.
TEST_P(Curves, FollowsPyTorch) {
  const std::vector<double> torch = Curve(json_, "losses");
  std::vector<double> exact = Curve(json_, "losses_in_double");
  if (exact.empty()) exact = torch;
  ASSERT_EQ(torch.size(), 20u);
  ASSERT_EQ(exact.size(), 20u);
  const std::vector<double> ours = Losses("adamw:lr=1e-3");
  const auto strayed = [&](size_t steps) {
    double most = 0;
    for (size_t i = 0; i < steps; ++i) {
      most = std::max(most, std::abs(torch[i] - exact[i]) / exact[i]);
    }
    return most;
  };
  constexpr size_t kBeforeRoundingRules = 2;
  for (size_t i = 0; i < ours.size(); ++i) {
    const double own = strayed(i < kBeforeRoundingRules ? i + 1 : torch.size());
    const double tolerance = std::max(1e-3, 3 * own);
    EXPECT_NEAR(ours[i], exact[i], tolerance * std::max(exact[i], 1e-3 * exact[0])) << "step " << i;
  }
}

TEST_P(Curves, FollowsPyTorchCloselyWhereRoundingDoesNotRule) {
  const std::vector<double> torch = Curve(json_, "losses_eps_1e-3");
  if (torch.empty()) GTEST_SKIP() << "no such curve: see make_curves.py";
  const std::vector<double> ours = Losses("adamw:lr=1e-3,eps=1e-3");
  for (size_t i = 0; i < ours.size(); ++i)
    EXPECT_NEAR(ours[i], torch[i], 5e-3 * torch[i]) << "step " << i;
}

TEST_P(Curves, FollowsPyTorchCloselyInSmallSteps) {
  const std::vector<double> torch = Curve(json_, "losses_lr_1e-5");
  if (torch.empty()) GTEST_SKIP() << "no such curve: see make_curves.py";
  const std::vector<double> ours = Losses("adamw:lr=1e-5");
  for (size_t i = 0; i < ours.size(); ++i)
    EXPECT_NEAR(ours[i], torch[i], 5e-3 * torch[i]) << "step " << i;
}

INSTANTIATE_TEST_SUITE_P(Models, Curves,
                         testing::Values("mlp", "lenet", "tinybert", "mobilenetv2_96",
                                         "resnet18_32"),
                         [](const auto& info) { return info.param; });

}  // namespace onward::curves_test
