// SPDX-License-Identifier: Apache-2.0
// What an adapter adds to the weight, in numbers.
#ifndef ONWARD_TRAINING_INFO_ADAPTERS_DELTA_H_
#define ONWARD_TRAINING_INFO_ADAPTERS_DELTA_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/tensor/tensor.h"
#include "training_info/adapters/site.h"

namespace onward {

// scale * A B, in the shape and order of the site's operand. An error where A and B do not fit.
absl::StatusOr<std::vector<double>> DeltaOf(const Site& site, const Tensor& a, const Tensor& b,
                                            double scale);

// Back through the site's chain: what the source has to change by. Nothing where the chain has a
// step whose shapes are not known.
std::optional<std::vector<double>> DeltaOfSource(const Site& site, const Sight& sight,
                                                 std::vector<double> delta);

// tensor + delta, in the tensor's type.
absl::StatusOr<Tensor> Sum(const Tensor& tensor, const std::vector<double>& delta);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_ADAPTERS_DELTA_H_
