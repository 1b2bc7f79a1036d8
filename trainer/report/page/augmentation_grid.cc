// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/page/augmentation_grid.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "data/pictures/grid.h"
#include "data/random.h"
#include "trainer/report/page/report.h"

namespace onward {
namespace {

constexpr int64_t kGap = 2;
constexpr int64_t kShownExamples = 4, kShownEpochs = 7;

// The first input that is a picture.
absl::StatusOr<Picture> FirstPicture(const Dataset& data, const std::vector<Tensor>& batch,
                                     int64_t row) {
  const std::vector<FieldInfo> fields = data.fields();
  for (size_t k = 0; k < fields.size(); ++k) {
    if (fields[k].is_label || fields[k].shape.rank() < 2) continue;
    auto picture = PictureOf(batch[k], row);
    if (picture.ok()) return picture;
  }
  return absl::InvalidArgumentError(absl::StrCat(data.source(), ": no input is a picture"));
}

// epochs + 1 of each example, the example itself first.
absl::StatusOr<std::vector<Picture>> Variants(const Dataset& data, uint64_t seed, int64_t examples,
                                              int64_t epochs) {
  std::vector<Picture> pictures;
  for (int64_t example = 0; example < std::min(examples, data.size()); ++example) {
    std::vector<Tensor> batch;
    ONWARD_RETURN_IF_ERROR(data.Fill({example}, &batch));
    ONWARD_ASSIGN_OR_RETURN(pictures.emplace_back(), FirstPicture(data, batch, 0));
    std::vector<int64_t> indices(static_cast<size_t>(epochs), example);
    std::vector<uint64_t> keys;
    for (int64_t epoch = 0; epoch < epochs; ++epoch) {
      keys.push_back(ExampleKey(seed, epoch, example, 0));
    }
    ONWARD_RETURN_IF_ERROR(data.FillVaried(indices, keys, &batch));
    for (int64_t epoch = 0; epoch < epochs; ++epoch) {
      ONWARD_ASSIGN_OR_RETURN(pictures.emplace_back(), FirstPicture(data, batch, epoch));
    }
  }
  return pictures;
}

}  // namespace

absl::StatusOr<Picture> AugmentationGrid(const Dataset& data, uint64_t seed, int64_t examples,
                                         int64_t epochs) {
  ONWARD_ASSIGN_OR_RETURN(const std::vector<Picture> pictures,
                          Variants(data, seed, examples, epochs));
  return TilePictures(pictures, epochs + 1, kGap);
}

std::optional<Picture> ShownAugmentation(const Dataset& data, uint64_t seed) {
  const auto pictures = Variants(data, seed, kShownExamples, kShownEpochs);
  if (!pictures.ok()) return std::nullopt;
  bool varies = false;
  for (size_t i = 0; i < pictures->size(); ++i) {
    varies |= (*pictures)[i].pixels != (*pictures)[i - i % (kShownEpochs + 1)].pixels;
  }
  if (!varies) return std::nullopt;
  return TilePictures(*pictures, kShownEpochs + 1, kGap);
}

}  // namespace onward
