// SPDX-License-Identifier: Apache-2.0
// Constraints of operators that slide a window: convolutions and pools.
#include "absl/strings/str_join.h"
#include "core/graph/constraints/rules.h"

namespace onward::constraints {
namespace {

std::vector<std::string> AutoPads() { return {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", ""}; }

// A list attribute with `count` values (-1: any number of them) of at least `low`.
void ExpectList(Subject& s, const char* attribute, int64_t count, int64_t low) {
  if (!s.node.Has(attribute)) return;
  const std::vector<int64_t> values = s.node.Ints(attribute);
  if (count >= 0 && static_cast<int64_t>(values.size()) != count) {
    return s.Fail(attribute, " has ", values.size(), " values, expected ", count);
  }
  for (int64_t value : values) {
    if (value >= low && value <= kLargest) continue;
    return s.Fail(attribute, " holds ", value, ", expected numbers in [", low, ", ", kLargest, "]");
  }
}

// Spatial axes: those of the data, of the weights, or as many as the kernel has; -1 where
// none of them is known.
int64_t SpatialAxes(const Subject& s, int data, int weight) {
  if (s.Rank(data) >= 0) return s.Rank(data) - 2;
  if (weight >= 0 && s.Rank(weight) >= 0) return s.Rank(weight) - 2;
  return s.node.Has("kernel_shape") ? static_cast<int64_t>(s.node.Ints("kernel_shape").size()) : -1;
}

void CheckWindow(Subject& s, int data, int weight) {
  if (s.Rank(data) >= 0 && s.Rank(data) < 3) {
    return s.Fail("input ", data, " has rank ", s.Rank(data),
                  ", expected [N, C, ...] with a spatial axis or more");
  }
  const int64_t n = SpatialAxes(s, data, weight);
  for (const char* list : {"kernel_shape", "strides", "dilations"}) ExpectList(s, list, n, 1);
  ExpectList(s, "pads", n < 0 ? -1 : 2 * n, 0);
  OneOf("auto_pad", AutoPads())(s);
}

Rule Window(int data = 0) {
  return [=](Subject& s) { CheckWindow(s, data, -1); };
}

// kernel_shape repeats what the weights have.
void CheckKernel(Subject& s, int weight) {
  const std::vector<int64_t> kernel = s.node.Ints("kernel_shape");
  for (size_t i = 0; i < kernel.size(); ++i) {
    const int64_t dim = s.Dim(weight, static_cast<int>(i) + 2);
    if (dim < 0 || dim == kernel[i]) continue;
    return s.Fail("kernel_shape is [", absl::StrJoin(kernel, ", "), "], but the weights have ", dim,
                  " on spatial axis ", i);
  }
}

struct Operands {
  int data = 0, weight = 1, bias = 2;
};

// W [M, C / group, ...]: each group of input channels makes M / group of output.
Rule Convolution(Operands at) {
  return [=](Subject& s) {
    CheckWindow(s, at.data, at.weight);
    SameRank(at.data, at.weight)(s);
    CheckKernel(s, at.weight);
    const int64_t group = s.node.Int("group", 1);
    if (group < 1 || group > kLargest) {
      return s.Fail("group is ", group, ", expected 1 or more");
    }
    const int64_t channels = s.Dim(at.data, 1), made = s.Dim(at.weight, 0),
                  read = s.Dim(at.weight, 1);
    if (channels >= 0 && read >= 0 && (read > kLargest || channels != read * group)) {
      s.Fail("the input has ", channels, " channels, but the weights read ", read, " in each of ",
             group, " groups");
    }
    if (made >= 0 && made % group != 0) {
      s.Fail("the weights make ", made, " channels, which do not divide into ", group, " groups");
    }
    if (s.Has(at.bias)) ExpectShape(s, at.bias, "the bias", {made});
  };
}

// W [C, M / group, ...].
void CheckTransposed(Subject& s) {
  CheckWindow(s, 0, 1);
  SameRank(0, 1)(s);
  CheckKernel(s, 1);
  const int64_t n = SpatialAxes(s, 0, 1), group = s.node.Int("group", 1);
  ExpectList(s, "output_padding", n, 0);
  if (const size_t given = s.node.Ints("output_shape").size();
      n >= 0 && s.node.Has("output_shape") && static_cast<int64_t>(given) != n) {
    s.Fail("output_shape has ", given, " values, expected ", n);
  }
  EachInRange("output_shape", 0)(s);
  if (group < 1 || group > kLargest) return s.Fail("group is ", group, ", expected 1 or more");
  const int64_t channels = s.Dim(0, 1), read = s.Dim(1, 0), made = s.Dim(1, 1);
  if (channels >= 0 && read >= 0 && channels != read) {
    s.Fail("the input has ", channels, " channels, but the weights read ", read);
  }
  if (read >= 0 && read % group != 0) {
    s.Fail("the weights read ", read, " channels, which do not divide into ", group, " groups");
  }
  if (s.Has(2)) {
    ExpectShape(s, 2, "the bias", {made >= 0 && made <= kLargest ? made * group : int64_t{-1}});
  }
}

// Columns [N, C * product(block), L] become an image; both sizes are inputs.
void CheckCol2Im(Subject& s) {
  const int64_t n = s.Length(1) >= 0 ? s.Length(1) : s.Length(2);
  for (const char* list : {"strides", "dilations"}) ExpectList(s, list, n, 1);
  ExpectList(s, "pads", n < 0 ? -1 : 2 * n, 0);
  for (int input : {1, 2}) {
    ExpectShape(s, input, input == 1 ? "image_shape" : "block_shape", {n});
    for (int64_t size : s.Constant(input).value_or(std::vector<int64_t>())) {
      if (size >= 1 && size <= kLargest) continue;
      s.Fail("input ", input, " holds ", size, ", expected sizes of 1 or more");
    }
  }
}

}  // namespace

void AddWindowRows(Table& table) {
  AddRows(table, {"Conv"}, {Convolution({})});
  AddRows(table, {"ConvInteger"}, {Convolution({.bias = 9})});
  AddRows(table, {"QLinearConv"}, {Convolution({.weight = 3, .bias = 8})});
  AddRows(table, {"DeformConv"}, {Convolution({.bias = 3}), InRange("offset_group", 1)});
  AddRows(table, {"ConvTranspose"}, {CheckTransposed});
  AddRows(table, {"CausalConvWithState"},
          {OneOf("activation", {"none", "silu", "swish"}), RankIs(0, 3), RankIs(1, 3), RankIs(2, 1),
           RankIs(3, 3)});
  AddRows(table, {"MaxPool", "AveragePool", "LpPool"}, {Window(), InRange("p", 1)});
  AddRows(table, {"MaxUnpool"}, {Window(), SameRank(0, 1)});
  AddRows(table, {"GlobalAveragePool", "GlobalMaxPool"}, {RankAtLeast(0, 2)});
  AddRows(table, {"GlobalLpPool"}, {RankAtLeast(0, 2), InRange("p", 1)});
  AddRows(table, {"MaxRoiPool"},
          {RankIs(0, 4), RankIs(1, 2), EachInRange("pooled_shape", 1), [](Subject& s) {
             if (s.node.Ints("pooled_shape").size() != 2) s.Fail("pooled_shape needs two values");
           }});
  AddRows(table, {"RoiAlign"},
          {RankIs(0, 4), RankIs(1, 2), RankIs(2, 1), InRange("output_height", 1),
           InRange("output_width", 1), InRange("sampling_ratio", 0), OneOf("mode", {"avg", "max"}),
           OneOf("coordinate_transformation_mode", {"half_pixel", "output_half_pixel"})});
  AddRows(table, {"Col2Im"}, {RankIs(0, 3), CheckCol2Im});
  AddRows(table, {"LRN"}, {RankAtLeast(0, 2), InRange("size", 1)});
}

}  // namespace onward::constraints
