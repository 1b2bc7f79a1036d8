// SPDX-License-Identifier: Apache-2.0
// Models as scikit-learn's converters write them: weights in attributes, scores in dictionaries.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"
#include "training_info/lower.h"
#include "training_info/validate.h"

namespace onward::learned_models_test {

using testing::IsEmpty;
using testing::SizeIs;

// No import of ai.onnx: nothing of it is used.
constexpr char kClassifier[] = R"(<ir_version: 4, opset_import: ["ai.onnx.ml" : 1]>
  m (float[N, 2] x) => (int64[N] class, seq(map(int64, float)) scores) {
    class, raw = ai.onnx.ml.LinearClassifier <classlabels_ints = [4, 7, 9],
        coefficients = [0.5, -0.25, 0.1, 0.3, -0.6, 0.2], intercepts = [0.1, 0.0, -0.1],
        post_transform = "LOGISTIC"> (x)
    normal = ai.onnx.ml.Normalizer <norm = "L1"> (raw)
    scores = ai.onnx.ml.ZipMap <classlabels_int64s = [4, 7, 9]> (normal)
  })";

TEST(LearnedModels, AClassifierIsTrainedByItsScores) {
  const Model model = TextModel(kClassifier);
  EXPECT_EQ(DefaultOutput(CanonicalGraph(model).value()), "scores");
  EXPECT_EQ(LastOperator(CanonicalGraph(model).value(), "scores"), "Softmax");
  AuthorOptions options;
  options.loss = ParseLoss("cross_entropy:logits=probabilities").value();
  auto made = MakeTrainable(model, options, DefaultEnvironment());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->trained, SizeIs(2));
  const auto findings = CheckModel(made->model, DefaultEnvironment());
  ASSERT_TRUE(findings.ok()) << findings.status();
  EXPECT_THAT(*findings, IsEmpty());
  auto training = Open(Reread(made->model));
  const TensorMap feeds = {{"x", Floats({4, 2}, {1, 2, -1, 0.5, 3, -2, 0.25, 1})},
                           {"label", Int64s({0, 1, 2, 0})}};
  std::vector<double> losses;
  for (int i = 0; i < 20; ++i) {
    auto out = training->Step(feeds, {"loss"});
    ASSERT_TRUE(out.ok()) << out.status();
    losses.push_back(Values(out->at("loss"))[0]);
  }
  EXPECT_LT(losses.back(), losses.front());
}

}  // namespace onward::learned_models_test
