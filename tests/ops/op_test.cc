// SPDX-License-Identifier: Apache-2.0
// Every row of every table.
#include <gtest/gtest.h>

#include <map>
#include <string>

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

namespace {

// Operator or row -> why it cannot pass yet.
const std::map<std::string, std::string>& KnownFailures() {
  static const auto* const failures = new std::map<std::string, std::string>{
      {"MaxUnpool", "no kernel; its rule is in place"},
  };
  return *failures;
}

class OpTest : public testing::TestWithParam<OpCase> {};

TEST_P(OpTest, Holds) {
  for (const std::string& name : {GetParam().name, GetParam().op}) {
    auto known = KnownFailures().find(name);
    if (known != KnownFailures().end()) GTEST_SKIP() << name << ": " << known->second;
  }
  CheckCase(GetParam());
}

TEST(KnownFailures, NameRows) {
  for (const auto& [name, reason] : KnownFailures()) {
    bool found = false;
    for (const OpCase& c : OpCases()) found |= c.name == name || c.op == name;
    EXPECT_TRUE(found) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, OpTest, testing::ValuesIn(OpCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace onward
