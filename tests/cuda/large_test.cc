// SPDX-License-Identifier: Apache-2.0
// Kernels on tensors that are larger than the rows of the tables.
#include <gtest/gtest.h>

#include <string>

#include "tests/cuda/device_checker.h"
#include "tests/cuda/large_calls.h"

namespace onward::large_test {

class LargeTest : public testing::TestWithParam<DType> {};

TEST_P(LargeTest, AgreesWithTheReference) {
  for (const LargeCall& c : LargeCalls()) {
    DeviceChecker checker;
    CheckLarge(c, GetParam(), checker.AsCheck());
    EXPECT_EQ(checker.calls(), 1) << c.op << " in " << DTypeName(GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(Types, LargeTest,
                         testing::Values(DType::kInt8, DType::kFloat16, DType::kFloat,
                                         DType::kInt64),
                         [](const auto& info) { return std::string(DTypeName(info.param)); });

TEST(HugeTest, AgreesWithTheReference) {
  for (const LargeCall& c : HugeCases()) {
    DeviceChecker checker;
    CheckLarge(c, DType::kInt8, checker.AsCheck());
    EXPECT_EQ(checker.calls(), 1) << c.op;
  }
}

}  // namespace onward::large_test
