// SPDX-License-Identifier: Apache-2.0
// Reading pictures between their pixels, in standard operators: which pixels a coordinate
// reads and how much of each, as formulas that can be differentiated again.
#ifndef ONWARD_AUTOGRAD_FUNCTIONS_SAMPLING_H_
#define ONWARD_AUTOGRAD_FUNCTIONS_SAMPLING_H_

#include <string>
#include <vector>

#include "core/graph/builder.h"

namespace onward {

struct Sampling {
  std::string mode = "linear";    // nearest, linear, cubic
  std::string padding = "zeros";  // zeros, border, reflection
  bool align_corners = true;      // where reflection turns
};

// A pixel that points read; everything has a number for each point.
struct PixelTap {
  Expr position;             // int64, within the picture
  Expr weight;               // zero where the padding is
  std::vector<Expr> slopes;  // its derivative by the coordinate of each axis
};

// Dimension `axis` of x as a scalar of the type of `like`.
Expr SizeAlong(const Expr& x, int axis, const Expr& like);

// The pixels that points read, given by their coordinates in pixels along each axis of x from
// the third one on. The coordinates have one shape.
std::vector<PixelTap> TapsAt(const std::vector<Expr>& coordinates, const Expr& x,
                             const Sampling& how);

}  // namespace onward

#endif  // ONWARD_AUTOGRAD_FUNCTIONS_SAMPLING_H_
