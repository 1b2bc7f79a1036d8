// SPDX-License-Identifier: Apache-2.0
// Several pictures as one, to be looked at.
#ifndef ONWARD_DATA_PICTURES_GRID_H_
#define ONWARD_DATA_PICTURES_GRID_H_

#include <cstdint>
#include <vector>

#include "core/picture/picture.h"

namespace onward {

// Pictures side by side, `columns` in a row, `gap` white pixels between them. All get the size
// of the largest, in the middle of their places, and colour where one has it.
Picture TilePictures(const std::vector<Picture>& pictures, int64_t columns, int64_t gap);

}  // namespace onward

#endif  // ONWARD_DATA_PICTURES_GRID_H_
