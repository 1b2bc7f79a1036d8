// SPDX-License-Identifier: Apache-2.0
// Shape arithmetic of gradients. Everything is decided while building where the
// types allow it, and becomes standard operators where they do not.
#ifndef ONWARD_AUTOGRAD_SHAPE_EXPR_H_
#define ONWARD_AUTOGRAD_SHAPE_EXPR_H_

#include <cstdint>
#include <vector>

#include "core/graph/builder.h"

namespace onward {

// States that `e` has the shape of `like`, which inference often cannot see
// (Reshape to a computed shape); returns e.
Expr WithShapeOf(const Expr& e, const Expr& like);

// The shape of x as 1-D int64: a constant where it is known.
Expr ShapeVector(const Expr& x);
// Dimension `axis` (negative from the end) as a one-element vector.
Expr DimVector(const Expr& x, int64_t axis);
// The same as a scalar.
Expr DimScalar(const Expr& x, int64_t axis);
// 0, 1, .. below n, an int64 scalar.
Expr CountTo(const Expr& n);
// The product of the elements of an int64 vector, one where there are none, as a vector.
Expr ProductOf(const Expr& sizes);
// Joins int64 vectors; a constant where all of them are.
Expr JoinVectors(GraphBuilder& b, const std::vector<Expr>& parts);

// Dimensions [0, end) and [start, rank) of x as a vector, counted from the end where negative;
// for an x of any rank.
Expr DimsBefore(const Expr& x, int64_t end);
Expr DimsFrom(const Expr& x, int64_t start);
// x, which has this rank: where nothing else tells, a Reshape that changes nothing does.
Expr OfRank(const Expr& x, int rank);
// x of any rank as [before, along, behind] its axis, which may be negative.
Expr AroundAxis(const Expr& x, int64_t axis);
// A vector over an axis of `like`, whatever its rank: [1, .., -1, .., 1]; and the other axes.
Expr AlongAxisOf(const Expr& vector, int64_t axis, const Expr& like);
Expr AxesButOf(const Expr& like, int64_t axis);
// Stacked matrices of any rank with their last two axes exchanged.
Expr TurnLastTwo(const Expr& x);

// e broadcast to the shape of `like`.
Expr ExpandLike(const Expr& e, const Expr& like);
// A tensor of the type and shape of `like`, all elements `value`.
Expr FullLike(const Expr& like, double value);
// Reshape(e, [-1]).
Expr Flat(const Expr& e);

// The gradient g brought to the shape of x: summed over the dimensions that
// were broadcast, expanded where g is statically smaller.
Expr FitTo(const Expr& g, const Expr& x);

// int64, the shape of x, element k (row-major) has the value k. Moved like x it
// tells where each element of the result came from.
Expr FlatPositions(const Expr& x);
// Zeros of the shape of `like` with g's elements added at flat `positions`.
Expr AddAtPositions(const Expr& g, const Expr& positions, const Expr& like);

}  // namespace onward

#endif  // ONWARD_AUTOGRAD_SHAPE_EXPR_H_
