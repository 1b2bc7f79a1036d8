// SPDX-License-Identifier: Apache-2.0
// Constraints of operators that move elements: shapes, slices, gathers.
#include <algorithm>
#include <optional>

#include "absl/strings/str_join.h"
#include "core/graph/constraints/rules.h"

namespace onward::constraints {
namespace {

// One size for each output, together the whole axis.
void CheckSplit(Subject& s) {
  const int64_t outputs = static_cast<int64_t>(s.node.outputs.size());
  const int64_t axis = s.node.Int("axis", 0);
  const bool in_range = axis >= -kMaxRank && axis < kMaxRank;
  const int64_t whole = in_range ? s.Dim(0, static_cast<int>(axis)) : -1;
  if (const auto count = s.Number("num_outputs")) {
    if (*count != outputs) {
      return s.Fail("num_outputs is ", *count, ", but the node has ", outputs, " outputs");
    }
    if (s.Has(1)) return s.Fail("both num_outputs and the input 'split' are given");
    const int64_t chunk = whole < 0 ? 0 : (whole + outputs - 1) / outputs;
    if (whole >= 0 && chunk * (outputs - 1) > whole) {
      s.Fail("an axis of size ", whole, " cannot be split into ", outputs, " parts");
    }
    return;
  }
  const auto sizes = s.List("split", 1);
  if (!sizes.has_value()) {
    if (s.version < 18 && !s.Has(1) && whole >= 0 && whole % outputs != 0) {
      s.Fail("an axis of size ", whole, " does not divide into ", outputs, " equal parts");
    }
    return;
  }
  if (static_cast<int64_t>(sizes->size()) != outputs) {
    return s.Fail("split has ", sizes->size(), " sizes, but the node has ", outputs, " outputs");
  }
  int64_t total = 0;
  for (int64_t size : *sizes) {
    if (size < 0 || size > (int64_t{1} << 48)) {
      return s.Fail("split holds ", size, ", which is no size");
    }
    total += size;
  }
  if (whole >= 0 && total != whole) {
    s.Fail("split has sizes of ", total, " together, but the axis has ", whole);
  }
}

void CheckSplitSizes(Subject& s) {
  for (int64_t size : s.Constant(1).value_or(std::vector<int64_t>())) {
    const bool one = s.Rank(1) == 0;  // the size of every part
    if (size >= (one ? 1 : 0) && size <= (int64_t{1} << 48)) continue;
    s.Fail("split holds ", size, ", which is no size");
  }
}

void CheckSlice(Subject& s) {
  Axes("axes", 3)(s);
  int64_t count = -1;
  for (const auto& [name, input] : {std::pair("starts", 1), std::pair("ends", 2),
                                    std::pair("axes", 3), std::pair("steps", 4)}) {
    const int64_t given = s.node.Has(name) ? static_cast<int64_t>(s.node.Ints(name).size())
                          : s.Has(input)   ? s.Length(input)
                                           : -1;
    if (given >= 0 && count >= 0 && given != count) {
      return s.Fail(name, " has ", given, " values, but starts has ", count);
    }
    count = std::max(count, given);
  }
  const bool all_axes = !s.node.Has("axes") && !s.Has(3);
  if (all_axes && s.Rank(0) >= 0 && count > s.Rank(0)) {
    s.Fail("starts has ", count, " values for an input of rank ", s.Rank(0));
  }
  for (int64_t step : s.Constant(4).value_or(std::vector<int64_t>())) {
    if (step == 0) return s.Fail("steps holds 0");
  }
}

// Two values for each of the axes, of all of them where none are listed.
void CheckPad(Subject& s) {
  Axes("axes", 3)(s);
  OneOf("mode", {"constant", "reflect", "edge", "wrap"})(s);
  const int64_t axes = s.Has(3) ? s.Length(3) : s.Rank(0);
  const char* attribute = s.node.Has("paddings") ? "paddings" : "pads";
  const auto pads = s.List(attribute, 1);
  const int64_t given = pads.has_value() ? static_cast<int64_t>(pads->size()) : s.Length(1);
  if (axes >= 0 && given >= 0 && given != 2 * axes) {
    return s.Fail("pads has ", given, " values for ", axes, " axes, expected ", 2 * axes);
  }
  for (int64_t pad : pads.value_or(std::vector<int64_t>())) {
    if (pad < -(int64_t{1} << 48) || pad > (int64_t{1} << 48)) {
      return s.Fail("pads holds ", pad, ", which is beyond any size");
    }
  }
}

void CheckGatherND(Subject& s) {
  const int64_t batch = s.node.Int("batch_dims", 0);
  const int data = s.Rank(0), indices = s.Rank(1);
  if (batch < 0 || batch >= kMaxRank || (data >= 0 && batch >= data) ||
      (indices >= 0 && batch >= indices)) {
    return s.Fail("batch_dims is ", batch, ", expected a number from 0 that is below the ranks of ",
                  "data", data < 0 ? "" : absl::StrCat(" (", data, ")"), " and indices",
                  indices < 0 ? "" : absl::StrCat(" (", indices, ")"));
  }
  const int64_t listed = s.Dim(1, -1);
  if (data >= 0 && listed >= 0 && (listed < 1 || listed > data - batch)) {
    s.Fail("each index has ", listed, " numbers, expected 1 to ", data - batch);
  }
}

// updates: the axes of indices but the last, then those of data that it does not index.
void CheckScatterND(Subject& s) {
  const int data = s.Rank(0), indices = s.Rank(1);
  if (data == 0 || indices == 0) return s.Fail("data and indices must have an axis or more");
  const int64_t listed = s.Dim(1, -1);
  if (data < 0 || indices < 0 || listed < 0) return;
  if (listed > data) {
    return s.Fail("each index has ", listed, " numbers, but data has rank ", data);
  }
  ExpectRank(s, 2, indices - 1 + data - static_cast<int>(listed));
}

void CheckConcat(Subject& s) {
  Axis({.otherwise = s.version < 4 ? std::optional<int64_t>(1) : std::nullopt})(s);
  for (size_t i = 1; i < s.node.inputs.size(); ++i) SameRank(0, static_cast<int>(i))(s);
}

// Channels that become blocks, or blocks that become channels.
Rule Blocks(bool to_space) {
  return [=](Subject& s) {
    ExpectRank(s, 0, 4);
    OneOf("mode", {"DCR", "CRD"})(s);
    const int64_t size = s.node.Int("blocksize", 1);
    if (size < 1 || size > (int64_t{1} << 24)) {
      return s.Fail("blocksize is ", size, ", expected 1 or more");
    }
    const auto divides = [&](int axis, int64_t by, const char* what) {
      const int64_t dim = s.Dim(0, axis);
      if (dim >= 0 && dim % by != 0) s.Fail(dim, " ", what, " do not divide by ", by);
    };
    if (to_space) return divides(1, size * size, "channels");
    divides(2, size, "rows");
    divides(3, size, "columns");
  };
}

void CheckExpandedShape(Subject& s) {
  for (int64_t dim : s.Constant(1).value_or(std::vector<int64_t>())) {
    if (dim < 0) return s.Fail("input 1 holds ", dim, ", which is no size");
  }
}

// Nothing where a size is not known, or there are too many.
std::optional<int64_t> Elements(const std::vector<int64_t>& dims) {
  int64_t elements = 1;
  for (const int64_t dim : dims) {
    if (dim < 0 || dim > kLargest || elements * dim > kLargest) return std::nullopt;
    elements *= dim;
  }
  return elements;
}

// The standard knows 0 (as in the input) and -1 (the rest), the latter once.
void CheckReshape(Subject& s) {
  const auto shape = s.List("shape", 1);
  if (!shape.has_value()) return;
  if (std::count(shape->begin(), shape->end(), -1) > 1) {
    return s.Fail("the new shape [", absl::StrJoin(*shape, ", "), "] has -1 more than once");
  }
  for (int64_t dim : *shape) {
    if (dim < -1) return s.Fail("the new shape holds ", dim);
  }
  const std::optional<int64_t> given = Elements(DimsOf(s, 0));
  if (s.Rank(0) < 0 || !given.has_value()) return;
  std::vector<int64_t> dims = *shape;
  for (size_t i = 0; i < dims.size() && s.node.Int("allowzero", 0) == 0; ++i) {
    if (dims[i] == 0 && static_cast<int>(i) < s.Rank(0)) dims[i] = s.Dim(0, static_cast<int>(i));
  }
  const auto rest = std::find(dims.begin(), dims.end(), -1);
  const bool open = rest != dims.end();
  if (open) *rest = 1;
  const std::optional<int64_t> wanted = Elements(dims);
  if (!wanted.has_value()) return;
  const bool fits = !open ? *wanted == *given : *wanted == 0 || *given % *wanted == 0;
  if (!fits) {
    s.Fail("the new shape [", absl::StrJoin(*shape, ", "), "] does not hold ", *given, " elements");
  }
}

void CheckCenterCropPad(Subject& s) {
  Axes("axes", -1)(s);
  const int64_t axes =
      s.node.Has("axes") ? static_cast<int64_t>(s.node.Ints("axes").size()) : s.Rank(0);
  if (axes >= 0) ExpectShape(s, 1, "the new sizes", {axes});
  CheckExpandedShape(s);
}

void CheckReverseSequence(Subject& s) {
  const int64_t batch = s.node.Int("batch_axis", 1), time = s.node.Int("time_axis", 0);
  if (!((batch == 0 && time == 1) || (batch == 1 && time == 0))) {
    return s.Fail("batch_axis is ", batch, " and time_axis ", time,
                  ", expected 0 and 1 or 1 and 0");
  }
  ExpectShape(s, 1, "sequence_lens", {s.Dim(0, static_cast<int>(batch))});
}

void CheckTopK(Subject& s) {
  Axis({.otherwise = -1})(s);
  const int64_t axis = s.node.Int("axis", -1);
  const auto listed = s.Constant(1);
  const std::optional<int64_t> k = s.node.Has("k") ? s.Number("k")
                                   : listed.has_value() && listed->size() == 1
                                       ? std::optional((*listed)[0])
                                       : std::nullopt;
  if (listed.has_value() && listed->size() != 1)
    s.Fail("K has ", listed->size(), " elements, not one");
  if (!k.has_value() || axis < -kMaxRank || axis >= kMaxRank) return;
  const int64_t whole = s.Dim(0, static_cast<int>(axis));
  if (*k < 0 || (whole >= 0 && *k > whole)) {
    s.Fail("K is ", *k, whole < 0 ? "" : absl::StrCat(", but the axis has ", whole, " elements"));
  }
}

}  // namespace

void AddMovementRows(Table& table) {
  AddRows(table, {"Transpose"}, {Permutation("perm")});
  AddRows(table, {"Split"}, {Axis({.otherwise = 0}), CheckSplit});
  AddRows(table, {"SplitToSequence"}, {Axis({.otherwise = 0}), CheckSplitSizes});
  AddRows(table, {"Slice"}, {CheckSlice});
  AddRows(table, {"Pad"}, {CheckPad});
  AddRows(table, {"Squeeze"}, {Axes("axes", 1)});
  AddRows(table, {"Unsqueeze"}, {NewAxes("axes", 1)});
  AddRows(table, {"Flatten"}, {Axis({.otherwise = 1, .end = true})});
  AddRows(table, {"Concat"}, {CheckConcat});
  AddRows(table, {"Gather"}, {RankAtLeast(0, 1), Axis({.otherwise = 0})});
  AddRows(table, {"GatherElements"}, {Axis({.otherwise = 0}), SameRank(0, 1)});
  AddRows(table, {"Scatter", "ScatterElements"},
          {Axis({.otherwise = 0}), SameRank(0, 1), SameRank(1, 2),
           OneOf("reduction", {"none", "add", "mul", "max", "min"})});
  AddRows(table, {"GatherND"}, {CheckGatherND});
  AddRows(table, {"ScatterND"},
          {CheckScatterND, OneOf("reduction", {"none", "add", "mul", "max", "min"})});
  AddRows(table, {"TensorScatter"},
          {Axis({.otherwise = -2}), SameRank(0, 1), OneOf("mode", {"linear", "circular"})});
  AddRows(table, {"DepthToSpace"}, {Blocks(true)});
  AddRows(table, {"SpaceToDepth"}, {Blocks(false)});
  AddRows(table, {"Expand"}, {CheckExpandedShape});
  AddRows(table, {"Reshape"}, {CheckReshape});
  AddRows(table, {"Tile"}, {[](Subject& s) {
            if (s.version >= 6) ForEachAxis(1, 0, 0)(s);
          }});
  AddRows(table, {"CenterCropPad"}, {CheckCenterCropPad});
  AddRows(table, {"ReverseSequence"}, {RankAtLeast(0, 2), CheckReverseSequence});
  AddRows(table, {"Compress"}, {Axis({}), RankIs(1, 1)});
  AddRows(table, {"Unique"}, {Axis({})});
  AddRows(table, {"OneHot"}, {Axis({.otherwise = -1, .grow = 1}), Scalar(1), RankIs(2, 1)});
  AddRows(table, {"TopK"}, {CheckTopK});
  AddRows(table, {"Trilu"}, {RankAtLeast(0, 2), Scalar(1)});
  AddRows(table, {"Shape", "Size", "Identity", "NonZero", "Where"}, {});
}

}  // namespace onward::constraints
