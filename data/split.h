// SPDX-License-Identifier: Apache-2.0
// Parts of data sets, and how often classes occur in them.
#ifndef ONWARD_DATA_SPLIT_H_
#define ONWARD_DATA_SPLIT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/dataset.h"

namespace onward {

// The examples `indices` of a data set, in this order.
std::unique_ptr<Dataset> SelectExamples(std::shared_ptr<const Dataset> data,
                                        std::vector<int64_t> indices);

// One of several parts that are as large as each other.
struct Fold {
  int64_t number = 1, count = 2;  // from 1
};

// How examples are divided into those for training and the rest.
struct SplitRule {
  std::optional<double> share;  // for training
  std::optional<Fold> fold;     // the rest
  uint64_t seed = 0;
  bool any() const { return share || fold; }
};

// Which examples are for training and which are the rest, each in order.
struct SplitIndices {
  std::vector<int64_t> train, rest;
};
// As SplitDataset does it, of `size` examples with one class label each, or (undefined or of
// another size) without. The rule says something.
absl::StatusOr<SplitIndices> SplitExamples(int64_t size, const Tensor& labels,
                                           const SplitRule& rule, absl::string_view source);

struct SplitParts {
  std::unique_ptr<Dataset> train, rest;
};

// The examples for training and the rest, both in the order of the data set. Of every class the
// same share, as nearly as whole numbers allow; which examples these are is a function of the
// seed. Each example is the rest in one of the folds. An error where a part would be empty.
absl::StatusOr<SplitParts> SplitDataset(std::shared_ptr<const Dataset> data, const SplitRule& rule);

// How many examples each class has; empty where the examples do not have one class each.
std::vector<int64_t> ClassCounts(const Dataset& data);

// A weight for each class with which all count the same: examples / (classes that occur *
// examples of this one), 0 for classes that do not occur. An error where the examples do not
// have one class each.
absl::StatusOr<std::vector<double>> ClassWeights(const Dataset& data);

// The examples of an epoch that takes all classes equally often: `labels.size()` of them, each
// class's over and over in ever new orders. Negative labels are left out.
std::vector<int64_t> BalancedOrder(absl::Span<const int64_t> labels, uint64_t seed, int64_t epoch);

}  // namespace onward

#endif  // ONWARD_DATA_SPLIT_H_
