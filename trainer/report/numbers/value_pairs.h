// SPDX-License-Identifier: Apache-2.0
// Some of the numbers that a model predicted, with those that were right.
#ifndef ONWARD_TRAINER_REPORT_NUMBERS_VALUE_PAIRS_H_
#define ONWARD_TRAINER_REPORT_NUMBERS_VALUE_PAIRS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace onward {

struct NumberPair {
  double actual = 0, predicted = 0;
};

// Keeps every k-th pair, the smallest power of two k with which they are few enough; the same
// pairs give the same sample.
class PairSample {
 public:
  explicit PairSample(size_t most = 2000) : most_(most) {}
  void Add(double actual, double predicted);
  const std::vector<NumberPair>& pairs() const { return pairs_; }

 private:
  size_t most_;
  int64_t stride_ = 1, seen_ = 0;
  std::vector<NumberPair> pairs_;
};

}  // namespace onward

#endif  // ONWARD_TRAINER_REPORT_NUMBERS_VALUE_PAIRS_H_
