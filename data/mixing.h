// SPDX-License-Identifier: Apache-2.0
// Labels as probabilities, and batches whose examples are mixed in pairs: mixup (Zhang et al.,
// "mixup: beyond empirical risk minimization") and cutmix (Yun et al., "CutMix").
#ifndef ONWARD_DATA_MIXING_H_
#define ONWARD_DATA_MIXING_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/random.h"

namespace onward {

// The data set with its label as probabilities, float [classes]: 1 for its class, all 0 for a
// negative one. Where hints() ask for it, FillVaried mixes: the i-th example of a batch with
// the i-th from its end, all by the same weight, which the batch's keys decide. With both mixup
// and cutmix each batch takes one of them. An error where examples do not have one class each,
// or hold nothing that can be mixed.
absl::StatusOr<std::unique_ptr<Dataset>> WithSoftLabels(std::shared_ptr<const Dataset> data,
                                                        int64_t classes);

// Row i becomes weight * row i + (1 - weight) * row n-1-i.
void MixRows(double weight, Tensor* batch);

// A rectangle of pixels.
struct Patch {
  int64_t top = 0, left = 0, height = 0, width = 0;
};
// Within it row i becomes row n-1-i. Rows are [C, H, W], [H, W, C] (1 or 3 channels) or [H, W].
void SwapPatches(const Patch& patch, Tensor* batch);

// From the distribution Beta(alpha, alpha), in [0, 1].
double DrawBeta(double alpha, Random& random);

}  // namespace onward

#endif  // ONWARD_DATA_MIXING_H_
