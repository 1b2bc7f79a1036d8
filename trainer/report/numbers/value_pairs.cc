// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/numbers/value_pairs.h"

namespace onward {

void PairSample::Add(double actual, double predicted) {
  if (seen_++ % stride_ != 0) return;
  if (pairs_.size() == most_) {
    for (size_t i = 0; 2 * i < pairs_.size(); ++i) pairs_[i] = pairs_[2 * i];
    pairs_.resize((pairs_.size() + 1) / 2);
    stride_ *= 2;
    if ((seen_ - 1) % stride_ != 0) return;
  }
  pairs_.push_back({actual, predicted});
}

}  // namespace onward
