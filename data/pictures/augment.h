// SPDX-License-Identifier: Apache-2.0
// Random variations of pictures for training, by name:
//
//   augment=flip,crop:4,rotate:10,colour:0.2,erase:0.25,resize:0.8-1.2
//
// What a picture becomes is a function of the picture, the list and a key. The functions that
// change pixels are here one by one, with nothing random in them.
#ifndef ONWARD_DATA_PICTURES_AUGMENT_H_
#define ONWARD_DATA_PICTURES_AUGMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/picture/picture.h"

namespace onward {

struct AugmentStep {
  int kind = 0;              // in the table of augment.cc
  double low = 0, high = 0;  // one number is both
};
using Augmentation = std::vector<AugmentStep>;

// Unknown names and numbers out of range are errors that say what is known.
absl::StatusOr<Augmentation> ParseAugmentation(absl::string_view text);

struct AugmentHelp {
  const char* form;
  const char* what;
};
std::vector<AugmentHelp> AugmentationHelp();

// The variation that `key` decides, of the same size.
Picture Augmented(Picture picture, const Augmentation& steps, uint64_t key);

// Left for right; top for bottom.
Picture Mirrored(const Picture& picture);
Picture UpsideDown(const Picture& picture);
// Every pixel moved, black where none comes from.
Picture Shifted(const Picture& picture, int64_t down, int64_t right);
// Counter-clockwise around the middle, bilinear, black where nothing comes from.
Picture Rotated(const Picture& picture, double degrees);
// Enlarged or shrunk to `factor` of its size. Where it is larger, the window begins at
// (top, left) of it; where it is smaller, it lies there on black. Both from 0 to 1, a share
// of the room there is.
Picture Zoomed(const Picture& picture, double factor, double top, double left);
// Each 1 changes nothing: brightness scales, contrast spreads around the mean grey, saturation
// spreads each pixel's channels around its own grey.
Picture Coloured(const Picture& picture, double brightness, double contrast, double saturation);
// A rectangle in black.
Picture Erased(Picture picture, int64_t top, int64_t left, int64_t height, int64_t width);

}  // namespace onward

#endif  // ONWARD_DATA_PICTURES_AUGMENT_H_
