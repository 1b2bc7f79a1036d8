// SPDX-License-Identifier: Apache-2.0
// Onward on the training conformance kit: every case does what its numpy model says, and `check`
// reports of each file exactly what the case lists. Written as plain models, its steps give the
// same.
#include <gtest/gtest.h>

#include "tests/support/training_kit.h"

namespace onward::kit_test {

class TrainingKit : public testing::TestWithParam<KitCase> {};

TEST_P(TrainingKit, DoesAsComputed) {
  const absl::Status status = RunKitCase(GetParam());
  EXPECT_TRUE(status.ok()) << GetParam().about << "\n" << status.message();
}

std::string TestName(const testing::TestParamInfo<KitCase>& info) {
  std::string name = info.param.name;
  for (char& c : name) c = isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, TrainingKit, testing::ValuesIn(ReadKit()), TestName);

std::vector<KitCase> WithPlainSteps() {
  std::vector<KitCase> kit = ReadKit();
  std::erase_if(kit, [](const KitCase& c) { return !HasPlainSteps(c); });
  return kit;
}

class PlainTrainingKit : public testing::TestWithParam<KitCase> {};

TEST_P(PlainTrainingKit, DoesAsComputed) {
  const absl::Status status = RunPlainSteps(GetParam());
  EXPECT_TRUE(status.ok()) << GetParam().about << "\n" << status.message();
}

INSTANTIATE_TEST_SUITE_P(Cases, PlainTrainingKit, testing::ValuesIn(WithPlainSteps()), TestName);

}  // namespace onward::kit_test
