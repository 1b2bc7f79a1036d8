// SPDX-License-Identifier: Apache-2.0
// Checks before a run stay small whatever the data set.
#include "trainer/run/data_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace onward::data_check_test {

using ::testing::HasSubstr;

// Rows of numbers; the last one may hold a NaN. Remembers what was asked for.
class Rows : public Dataset {
 public:
  Rows(int64_t size, int64_t width, bool decodes) : size_(size), width_(width), decodes_(decodes) {}
  int64_t size() const override { return size_; }
  std::vector<FieldInfo> fields() const override { return {{"x", DType::kFloat, {width_}}}; }
  absl::Status Fill(absl::Span<const int64_t> indices, std::vector<Tensor>* batch) const override {
    const auto count = static_cast<int64_t>(indices.size());
    read += count;
    most = std::max(most, count);
    *batch = {Tensor::Zeros(DType::kFloat, {count, width_})};
    if (indices.back() == size_ - 1) (*batch)[0].data<float>()[count * width_ - 1] = last;
    return absl::OkStatus();
  }
  bool decodes() const override { return decodes_; }
  int64_t classes() const override { return 0; }
  std::vector<std::string> class_names() const override { return {}; }

  mutable int64_t read = 0, most = 0;  // examples, in all and at once
  float last = 0;

 private:
  int64_t size_, width_;
  bool decodes_;
};

absl::Status Check(const Rows& rows, bool all) {
  return CheckData(rows, Feeding(), {}, {.all = all});
}

TEST(DataCheck, ReadsLittleOfWhatIsLarge) {
  const Rows stored(1 << 20, 1 << 10, false);
  ASSERT_TRUE(Check(stored, false).ok());
  EXPECT_LE(stored.read * 4096, 64 << 20);
  EXPECT_GE(stored.read * 4096, 60 << 20);
  // In pieces.
  EXPECT_LE(stored.most * 4096, 4 << 20);
  const Rows pictures(100000, 1 << 10, true);
  ASSERT_TRUE(Check(pictures, false).ok());
  ASSERT_TRUE(Check(pictures, true).ok());
  EXPECT_EQ(pictures.read, 2 * 64);
}

TEST(DataCheck, LooksAtAllWhenAskedTo) {
  Rows rows(40000, 1 << 10, false);
  rows.last = std::nanf("");
  EXPECT_TRUE(Check(rows, false).ok());
  const absl::Status status = Check(rows, true);
  EXPECT_TRUE(absl::IsOutOfRange(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("'x' of example 39999 of the data is nan"));
  EXPECT_LE(rows.most * 4096, 4 << 20);
}

// Pictures of 224x224 are judged 27 at a time, digits 256.
TEST(DataCheck, FewerLargeExamplesAtOnce) {
  EXPECT_EQ(ExamplesAtOnce(Rows(1000, 28 * 28, false)), 256);
  EXPECT_EQ(ExamplesAtOnce(Rows(1000, 3 * 224 * 224, true)), 27);
  EXPECT_EQ(ExamplesAtOnce(Rows(1000, 16 << 20, false)), 1);
}

}  // namespace onward::data_check_test
