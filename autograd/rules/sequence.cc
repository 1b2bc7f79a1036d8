// SPDX-License-Identifier: Apache-2.0
// Gradient rules: sequences and optionals (values.h says what their gradients are). They
// read lengths and positions, not the elements: a loop could not keep those for each
// iteration.
#include <utility>
#include <vector>

#include "autograd/rule.h"
#include "autograd/shape_expr.h"
#include "autograd/values.h"

namespace onward {
namespace {

// Where input `i` points in a sequence of as many elements as `like`, counted from the
// first: a negative position counts from the end of that one.
Expr PositionIn(const Expr& like, const Expr& position) {
  GraphBuilder& b = like.builder();
  const Expr count = CastLike(b.Op("SequenceLength", {like}), position);
  return Where(Less(position, b.Scalar(0, position)), position + count, position);
}

// s = [x0, x1, ...];  dxi = ds[i]
Grads SequenceConstructVjp(const Vjp& v) {
  Grads grads;
  for (int i = 0; i < v.inputs(); ++i) {
    grads.push_back(ElementGradient(v.dy(), v.b().Int(i), v.x(i)));
  }
  return grads;
}

// t = s with x before position p (or behind the last);  dx = dt[p],  ds = dt without it
Grads SequenceInsertVjp(const Vjp& v) {
  GraphBuilder& b = v.b();
  const Expr at = v.has_x(2) ? PositionIn(v.x(0), v.x(2)) : b.Int(-1);
  return {b.Op("SequenceErase", {v.dy(), at}), ElementGradient(v.dy(), at, v.x(1))};
}

// t = s without element p (or the last);  ds = dt with zero there
Grads SequenceEraseVjp(const Vjp& v) {
  GraphBuilder& b = v.b();
  const DType dtype = v.x(0).type().leaf();
  if (dtype == DType::kUndefined) {
    return {b.Fail(absl::InvalidArgumentError("the element type of the sequence is not known"))};
  }
  const Expr at = v.has_x(1) ? PositionIn(v.x(0), v.x(1)) : Expr();
  return {b.Op("SequenceInsert", {v.dy(), b.Constant(ScalarOf(dtype, 0)), at})};
}

// y = s[p];  ds = zeros, dy at p
Grads SequenceAtVjp(const Vjp& v) {
  GraphBuilder& b = v.b();
  const Expr at = PositionIn(v.x(0), v.x(1));
  const Expr others = b.Op("SequenceErase", {ZerosOf(v.x(0)), at});
  return {b.Op("SequenceInsert", {others, v.dy(), at})};
}

// s = the pieces of x;  dx = ds joined
Grads SplitToSequenceVjp(const Vjp& v) {
  const bool squeezed = !v.has_x(1) && v.attr("keepdims", 1) == 0;
  const Expr pieces =
      MapSequences({v.dy(), v.y()}, [](GraphBuilder&, const std::vector<Expr>& piece) {
        return Expand(piece[0], ShapeOf(piece[1]));
      });
  return {v.b().Op("ConcatFromSequence", {pieces},
                   {{"axis", v.attr("axis", 0)}, {"new_axis", squeezed ? 1 : 0}})};
}

// y = the elements of s joined;  ds = dy in pieces of their lengths
Grads ConcatFromSequenceVjp(const Vjp& v) {
  GraphBuilder& b = v.b();
  const int64_t axis = v.attr("axis", 0);
  if (v.attr("new_axis", 0) != 0) {
    return {b.Op("SplitToSequence", {v.dy()}, {{"axis", axis}, {"keepdims", 0}})};
  }
  const Expr lengths = MapSequences(
      {v.x()}, [&](GraphBuilder&, const std::vector<Expr>& x) { return DimVector(x[0], axis); });
  return {b.Op("SplitToSequence", {v.dy(), b.Op("ConcatFromSequence", {lengths}, {{"axis", 0}})},
               {{"axis", axis}})};
}

// s = a + b, element by element
Grads SequenceSumVjp(const Vjp& v) { return {v.dy(), v.dy()}; }

// o = [x], or x = [o]: the gradient of an optional is that of what it holds.
Grads OptionalVjp(const Vjp& v) { return {v.dy()}; }

}  // namespace

void RegisterSequenceRules(RuleTable& table) {
  table.Add("SequenceConstruct", SequenceConstructVjp);
  table.Add("SequenceInsert", SequenceInsertVjp);
  table.Add("SequenceErase", SequenceEraseVjp);
  table.Add("SequenceAt", SequenceAtVjp);
  table.Add("SplitToSequence", SplitToSequenceVjp);
  table.Add("ConcatFromSequence", ConcatFromSequenceVjp);
  table.Add("SequenceSum", SequenceSumVjp, kOnwardDomain);
  table.Add("Optional", OptionalVjp);
  table.Add("OptionalGetElement", OptionalVjp);
  for (const char* op : {"SequenceEmpty", "SequenceLength", "OptionalHasElement"}) {
    table.AddZero(op);
  }
}

}  // namespace onward
