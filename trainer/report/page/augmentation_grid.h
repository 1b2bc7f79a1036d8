// SPDX-License-Identifier: Apache-2.0
// What augmentation makes of the first examples of a data set, as a picture for the report.
#ifndef ONWARD_TRAINER_REPORT_PAGE_AUGMENTATION_GRID_H_
#define ONWARD_TRAINER_REPORT_PAGE_AUGMENTATION_GRID_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/pictures/picture.h"

namespace onward {

// A row for each of the first `examples`: the example itself, then what it is in the first
// `epochs` epochs of a run with this seed. An error where no input is a picture.
absl::StatusOr<Picture> AugmentationGrid(const Dataset& data, uint64_t seed, int64_t examples,
                                         int64_t epochs);

// A grid for the report; none where there are no pictures or nothing varies them.
std::optional<Picture> ShownAugmentation(const Dataset& data, uint64_t seed);

}  // namespace onward

#endif  // ONWARD_TRAINER_REPORT_PAGE_AUGMENTATION_GRID_H_
