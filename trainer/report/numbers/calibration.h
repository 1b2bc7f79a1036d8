// SPDX-License-Identifier: Apache-2.0
// Whether answers are right as often as the model believes.
#ifndef ONWARD_TRAINER_REPORT_NUMBERS_CALIBRATION_H_
#define ONWARD_TRAINER_REPORT_NUMBERS_CALIBRATION_H_

#include <array>
#include <cstdint>

namespace onward {

class Calibration {
 public:
  static constexpr int kBins = 15;
  // Answers with a confidence in (k / kBins, (k + 1) / kBins].
  struct Bin {
    int64_t count = 0, right = 0;
    double confidence = 0;  // sum

    double accuracy() const { return static_cast<double>(right) / static_cast<double>(count); }
    double mean_confidence() const { return confidence / static_cast<double>(count); }
  };
  using Bins = std::array<Bin, kBins>;

  Calibration() = default;
  explicit Calibration(const Bins& bins) : bins_(bins) {}

  // `confidence`: the probability that the model gave its answer.
  void Add(double confidence, bool right);

  const Bins& bins() const { return bins_; }
  int64_t total() const;
  // The expected calibration error: |accuracy - mean confidence| of each bin, weighted by its
  // answers. NaN while empty.
  double error() const;

 private:
  Bins bins_ = {};
};

}  // namespace onward

#endif  // ONWARD_TRAINER_REPORT_NUMBERS_CALIBRATION_H_
