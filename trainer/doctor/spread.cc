// SPDX-License-Identifier: Apache-2.0
#include "trainer/doctor/spread.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace onward {

void Spread::Add(double value) {
  if (!std::isfinite(value)) {
    ++not_finite_;
    return;
  }
  ++count_;
  const double before = value - mean_;
  mean_ += before / static_cast<double>(count_);
  squares_ += before * (value - mean_);
  low_ = std::min(low_, value);
  high_ = std::max(high_, value);
}

void Spread::Add(absl::Span<const double> values) {
  for (double value : values) Add(value);
}

double Spread::deviation() const {
  return count_ == 0 ? 0 : std::sqrt(squares_ / static_cast<double>(count_));
}

double Spread::rms() const { return std::hypot(mean_, deviation()); }

std::string Spread::ToString() const {
  return absl::StrFormat("mean %.4g, deviation %.4g, from %.4g to %.4g", mean_, deviation(), low_,
                         high_);
}

void AddColumns(absl::Span<const double> rows, std::vector<Spread>* columns) {
  for (size_t i = 0; i < rows.size(); ++i) (*columns)[i % columns->size()].Add(rows[i]);
}

}  // namespace onward
