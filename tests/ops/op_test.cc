// SPDX-License-Identifier: Apache-2.0
// Every row of every table.
#include <gtest/gtest.h>

#include "tests/ops/cases.h"

namespace onward {

std::vector<OpCase> OpCases() {
  std::vector<OpCase> all;
  for (auto* family : {ElementwiseCases, ActivationCases, ReduceCases, ShapeCases, IndexCases,
                       MatMulCases, ConvCases, PoolCases, NormCases, AttentionCases, RnnCases,
                       LossCases, QuantizeCases, ImageCases, SignalCases, TextCases, MlCases}) {
    for (OpCase& c : family()) all.push_back(std::move(c));
  }
  return all;
}

namespace op_test {

class OpTest : public testing::TestWithParam<OpCase> {};

TEST_P(OpTest, Holds) { CheckCase(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Ops, OpTest, testing::ValuesIn(OpCases()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Contrib, OpTest, testing::ValuesIn(ContribCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace op_test
}  // namespace onward
