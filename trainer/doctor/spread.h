// SPDX-License-Identifier: Apache-2.0
// Where numbers lie, and how far apart.
#ifndef ONWARD_TRAINER_DOCTOR_SPREAD_H_
#define ONWARD_TRAINER_DOCTOR_SPREAD_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace onward {

class Spread {
 public:
  void Add(double value);
  void Add(absl::Span<const double> values);

  int64_t count() const { return count_; }            // of finite numbers
  int64_t not_finite() const { return not_finite_; }  // the others, which do not count below
  double mean() const { return mean_; }
  double deviation() const;  // 0 while there are no numbers
  double low() const { return low_; }
  double high() const { return high_; }
  // sqrt(mean x^2)
  double rms() const;
  // "mean 0.1307, deviation 0.3081, from 0 to 1"
  std::string ToString() const;

 private:
  int64_t count_ = 0, not_finite_ = 0;
  double mean_ = 0, squares_ = 0;  // Welford's sum of squared distances to the mean
  double low_ = std::numeric_limits<double>::infinity();
  double high_ = -std::numeric_limits<double>::infinity();
};

// The spreads of the columns of rows that stand one after the other, added to those so far.
void AddColumns(absl::Span<const double> rows, std::vector<Spread>* columns);

}  // namespace onward

#endif  // ONWARD_TRAINER_DOCTOR_SPREAD_H_
