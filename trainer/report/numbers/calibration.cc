// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/numbers/calibration.h"

#include <algorithm>
#include <cmath>

namespace onward {

void Calibration::Add(double confidence, bool right) {
  if (!std::isfinite(confidence)) return;
  const int k = static_cast<int>(std::ceil(std::clamp(confidence, 0.0, 1.0) * kBins)) - 1;
  Bin& bin = bins_[std::max(k, 0)];
  ++bin.count;
  bin.right += right;
  bin.confidence += confidence;
}

int64_t Calibration::total() const {
  int64_t n = 0;
  for (const Bin& bin : bins_) n += bin.count;
  return n;
}

double Calibration::error() const {
  double sum = 0;
  for (const Bin& bin : bins_) {
    if (bin.count == 0) continue;
    sum += static_cast<double>(bin.count) * std::fabs(bin.accuracy() - bin.mean_confidence());
  }
  const int64_t n = total();
  return n == 0 ? std::nan("") : sum / static_cast<double>(n);
}

}  // namespace onward
