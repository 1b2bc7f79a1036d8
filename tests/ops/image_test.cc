// SPDX-License-Identifier: Apache-2.0
// Pictures at ties and bends, where a formula alone does not say what happens; subgradients as
// PyTorch has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ops/cases.h"

namespace onward::image_test {

using testing::ElementsAre;

std::vector<double> Shrunk(const char* coordinates, const char* rounding) {
  CaseRun run(Case("Resize", {Real({4}), Omitted(), Omitted(), Ints({2})},
                   {{"coordinate_transformation_mode", coordinates}, {"nearest_mode", rounding}}),
              DType::kFloat);
  run.Set("x0", {1, 2, 3, 4});
  return *ToDoubles(run.Results()[0]);
}

// Outputs lie at 0.5 and 2.5.
TEST(ResizeTies, GoWhereNearestModeSays) {
  EXPECT_THAT(Shrunk("half_pixel", "round_prefer_floor"), ElementsAre(1, 3));
  EXPECT_THAT(Shrunk("half_pixel", "round_prefer_ceil"), ElementsAre(2, 4));
  EXPECT_THAT(Shrunk("half_pixel", "floor"), ElementsAre(1, 3));
  EXPECT_THAT(Shrunk("half_pixel", "ceil"), ElementsAre(2, 4));
  // A whole coordinate is its own pixel, whatever the mode.
  EXPECT_THAT(Shrunk("asymmetric", "ceil"), ElementsAre(1, 3));
  EXPECT_THAT(Shrunk("asymmetric", "floor"), ElementsAre(1, 3));
}

// The derivative by the x of one point, for a picture [0, 1, 3] with its corners at -1 and 1.
double SlopeAt(double x, const char* padding) {
  CaseRun run(Case("GridSample", {Real({1, 1, 1, 3}), Real({1, 1, 1, 2})},
                   {{"align_corners", 1}, {"padding_mode", padding}})
                  .By({1}),
              DType::kDouble, CaseRun::Of::kGradients);
  run.Set("x0", {0, 1, 3});
  run.Set("x1", {x, 0});
  run.Set("c0", {1});
  return ToDoubles(run.Results()[0])->at(0);
}

TEST(GridSampleSlopes, AtPixelsAndBorders) {
  EXPECT_EQ(SlopeAt(0, "zeros"), 2);      // on a pixel: towards the next one
  EXPECT_EQ(SlopeAt(1, "zeros"), -3);     // on the last: towards the zero behind it
  EXPECT_EQ(SlopeAt(1.25, "border"), 0);  // beyond it nothing changes
  EXPECT_EQ(SlopeAt(-1.5, "border"), 0);
  for (const char* padding : {"border", "reflection"}) {  // nor on the outermost pixels
    EXPECT_EQ(SlopeAt(-1, padding), 0);
    EXPECT_EQ(SlopeAt(1, padding), 0);
    EXPECT_EQ(SlopeAt(0, padding), 2);
  }
  EXPECT_EQ(SlopeAt(1.5, "reflection"), -2);  // the picture runs backwards
  EXPECT_EQ(SlopeAt(3.5, "reflection"), 1);
}

// Equal products: the first sample, and of its pixels the first.
TEST(RoiAlignTies, GoToTheFirst) {
  CaseRun run(Case("RoiAlign", {Real({1, 1, 2, 2}), Real({1, 4}), Fed({1}, {0})},
                   {{"mode", "max"}, {"sampling_ratio", 1}})
                  .By({0}),
              DType::kDouble, CaseRun::Of::kGradients);
  run.Set("x0", {4, 4, 4, 4});
  run.Set("x1", {0.5, 0.5, 1.5, 1.5});  // one sample, in the middle of the four pixels
  run.Set("c0", {1});
  EXPECT_THAT(*ToDoubles(run.Results()[0]), ElementsAre(0.25, 0, 0, 0));
}

// Equal pixels: the first, row by row; a bin without pixels gives nothing to any.
TEST(MaxRoiPoolTies, GoToTheFirst) {
  CaseRun run(Case("MaxRoiPool",
                   {Real({1, 1, 2, 3}), ConstantNumbers({2, 5}, {0, 1, 0, 2, 1, 0, 9, 9, 9, 9})},
                   {{"pooled_shape", std::vector<int64_t>{1, 1}}})
                  .By({0}),
              DType::kDouble, CaseRun::Of::kGradients);
  run.Set("x0", {5, 4, 4, 5, 4, 4});
  run.Set("c0", {1, 7});
  EXPECT_THAT(*ToDoubles(run.Results()[0]), ElementsAre(0, 1, 0, 0, 0, 0));
}

TEST(NonMaxSuppressionTies, KeepTheOrderOfTheBoxes) {
  CaseRun run(
      Case("NonMaxSuppression", {Real({1, 3, 4}), Real({1, 1, 3}), Ints({9}), FloatList({0.5})})
          .DataDependent(),
      DType::kFloat);
  run.Set("x0", {0, 0, 1, 1, 5, 5, 6, 6, 0, 0, 1, 1});
  run.Set("x1", {2, 2, 2});
  EXPECT_THAT(*ToDoubles(run.Results()[0]), ElementsAre(0, 0, 0, 0, 0, 1));
}

}  // namespace onward::image_test
