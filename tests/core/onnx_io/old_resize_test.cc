// SPDX-License-Identifier: Apache-2.0
// Resize and Upsample of opset 10 and below keep their meaning when they are raised.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/lower.h"

namespace onward::old_resize_test {

using ::testing::ElementsAre;

std::vector<double> Result(const std::string& text, const TensorMap& feeds) {
  auto graph = RunnableGraph(TextModel(text), DefaultEnvironment());
  EXPECT_TRUE(graph.ok()) << graph.status();
  CompileOptions options;
  options.device = &DefaultEnvironment().cpu();
  options.operators = &DefaultEnvironment().operators();
  Session session(*std::move(graph), options);
  auto out = session.Run(feeds, nullptr);
  EXPECT_TRUE(out.ok()) << out.status();
  return Values(out->at("y"));
}

// The converter of onnx leaves out that pixels are counted from the corner there: half_pixel
// would give 1, 1.25, 1.75, 2.
TEST(OldResize, CountsFromTheCorner) {
  EXPECT_THAT(Result(R"(<ir_version: 4, opset_import: ["" : 10]>
    g (float[2] x) => (float[4] y) {
      s = Constant <value = float[1] {2}> ()
      y = Resize <mode = "linear"> (x, s)
    })",
                     {{"x", Floats({1, 2})}}),
              ElementsAre(1, 1.5, 2, 2));
}

TEST(OldResize, TakesThePixelBefore) {
  EXPECT_THAT(Result(R"(<ir_version: 4, opset_import: ["" : 9]>
    g (float[2] x) => (float[3] y) {
      s = Constant <value = float[1] {1.5}> ()
      y = Upsample <mode = "nearest"> (x, s)
    })",
                     {{"x", Floats({1, 2})}}),
              ElementsAre(1, 1, 2));
}

}  // namespace onward::old_resize_test
