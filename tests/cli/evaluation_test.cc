// SPDX-License-Identifier: Apache-2.0
// What evaluations of a run cost.
#include <gtest/gtest.h>

#include <regex>

#include "core/onnx_io/model.h"
#include "data/arrays/npy.h"
#include "tests/cli/journey.h"
#include "tests/support/text_model.h"

namespace onward::evaluation_test {

// Every example takes 1.6 MB on its way, 256 of them more than a user has for a batch of 4.
constexpr char kWide[] =
    "g (float[N, 2] x) => (float[N, 2] y) <float[2, 2] w = {1, 0, 0, 1}, int64[2] s = {1, 400000}, "
    "int64[1] a = {1}> { u = MatMul(x, w) m = ReduceSum(u, a) e = Expand(m, s) "
    "c = CumSum(e, a) d = ReduceMean(c, a) y = Add(u, d) }";

// The one at the end of a run counts, too.
TEST_F(Journey, EvaluationsTakeNoMoreThanTheBatch) {
  ASSERT_TRUE(WriteModel(TextModel(kWide), Path("m.onnx")).ok());
  ASSERT_TRUE(WriteNpy(Path("x.npy"), Tensor::Zeros(DType::kFloat, {300, 2})).ok());
  ASSERT_TRUE(WriteNpy(Path("y.npy"), Tensor::Zeros(DType::kFloat, {300, 2})).ok());
  const std::string data = "npy:" + Path("x.npy") + "," + Path("y.npy");
  Must("train " + Path("m.onnx") + " --data " + data + " --eval " + data +
       " --train w --batch 4 --steps 2 --quiet -o " + Path("o.onnx") + " --log " + Path("log"));
  std::smatch peak;
  const std::string log = scratch_.Read("log");
  ASSERT_TRUE(std::regex_search(log, peak, std::regex("\"peak_bytes\":([0-9]+)")));
  EXPECT_LT(std::stod(peak[1]), 250e6);
}

}  // namespace onward::evaluation_test
