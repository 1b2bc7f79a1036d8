// SPDX-License-Identifier: Apache-2.0
// Data sets opened by their specs, over files in a folder of the test's own.
#ifndef ONWARD_TESTS_DATA_SPEC_FIXTURE_H_
#define ONWARD_TESTS_DATA_SPEC_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "tests/support/scratch.h"

namespace onward {

class SpecTest : public ::testing::Test {
 protected:
  std::unique_ptr<Dataset> Open(const std::string& spec, Split split = Split::kTrain,
                                const DataContext& context = {}) {
    auto data = ParseDataSpec(spec, split, context);
    EXPECT_TRUE(data.ok()) << data.status();
    return data.ok() ? *std::move(data) : nullptr;
  }
  std::unique_ptr<Dataset> Open(const std::string& spec, const DataContext& context) {
    return Open(spec, Split::kTrain, context);
  }
  std::string ErrorOf(const std::string& spec, const DataContext& context = {}) {
    return std::string(ParseDataSpec(spec, Split::kTrain, context).status().message());
  }
  std::vector<Tensor> Take(const Dataset& data, std::vector<int64_t> indices) {
    std::vector<Tensor> batch;
    const absl::Status status = data.Fill(indices, &batch);
    EXPECT_TRUE(status.ok()) << status;
    return batch;
  }
  std::vector<Tensor> TakeVaried(const Dataset& data, std::vector<int64_t> indices,
                                 std::vector<uint64_t> keys) {
    std::vector<Tensor> batch;
    const absl::Status status = data.FillVaried(indices, keys, &batch);
    EXPECT_TRUE(status.ok()) << status;
    return batch;
  }
  std::vector<double> Values(const Tensor& t) { return *ToDoubles(t); }

  Scratch scratch_;
};

}  // namespace onward

#endif  // ONWARD_TESTS_DATA_SPEC_FIXTURE_H_
