// SPDX-License-Identifier: Apache-2.0
// Constraints of operators on signals, images and text.
#include "core/graph/constraints/rules.h"

namespace onward::constraints {
namespace {

// Sizes are products with them, rounded to integers.
void CheckFactors(Subject& s, const std::vector<double>& factors) {
  for (double factor : factors) {
    if (factor > 0 && factor <= static_cast<double>(kLargest)) continue;  // NaN is neither
    return s.Fail("scales holds ", factor, ", expected numbers above 0 and up to ", kLargest);
  }
}

// A size or a factor for each axis, or for each of those that `axes` lists.
void CheckResize(Subject& s) {
  Axes("axes", -1)(s);
  const int64_t axes =
      s.node.Has("axes") ? static_cast<int64_t>(s.node.Ints("axes").size()) : s.Rank(0);
  const int first = s.version < 11 ? 1 : 2;  // scales; sizes came with version 11
  for (int input = first; input <= 3 && input <= first + 1; ++input) {
    const int64_t length = s.Length(input);
    if (axes >= 0 && length > 0 && length != axes) {
      s.Fail("input ", input, " has ", length, " values for ", axes, " axes");
    }
  }
  CheckFactors(s, s.ConstantNumbers(first).value_or(std::vector<double>()));
  for (int64_t size : s.Constant(first + 1).value_or(std::vector<int64_t>())) {
    if (size < 0) return s.Fail("sizes holds ", size);
  }
}

void CheckUpsample(Subject& s) {
  const auto factors = s.ConstantNumbers(1);
  if (!factors.has_value()) return;
  if (s.Rank(0) >= 0 && static_cast<int>(factors->size()) != s.Rank(0)) {
    return s.Fail("scales has ", factors->size(), " values for ", s.Rank(0), " axes");
  }
  CheckFactors(s, *factors);
}

// A list of coordinates for each spatial axis of the image.
void CheckGridSample(Subject& s) {
  SameRank(0, 1)(s);
  const int rank = s.Rank(0);
  const int64_t coordinates = s.Dim(1, -1);
  if (rank >= 3 && coordinates >= 0 && coordinates != rank - 2) {
    s.Fail("the grid has ", coordinates, " coordinates for ", rank - 2, " spatial axes");
  }
}

void CheckTransform(Subject& s) {
  RankAtLeast(0, 2)(s);
  // The last axis holds the real and imaginary parts.
  const int64_t parts = s.Dim(0, -1);
  if (parts >= 0 && parts != 1 && parts != 2) {
    s.Fail("the last axis has ", parts, " elements, expected 1 (real) or 2 (complex)");
  }
  if (s.version < 20) return Axis({.otherwise = 1})(s);
  AxisInput(2)(s);
}

Rule PositiveInput(int input) {
  return [=](Subject& s) {
    Scalar(input)(s);
    for (int64_t value : s.Constant(input).value_or(std::vector<int64_t>())) {
      if (value < 1 || value > kLargest)
        s.Fail("input ", input, " is ", value, ", expected 1 or more");
    }
  };
}

void CheckGrams(Subject& s) {
  const int64_t least = s.node.Int("min_gram_length", 1), most = s.node.Int("max_gram_length", 1);
  if (least < 1 || most < least || most > kLargest) {
    s.Fail("grams of ", least, " to ", most, " items make no sense");
  }
}

std::vector<std::string> CoordinateModes() {
  return {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
          "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
}

}  // namespace

void AddSignalRows(Table& table) {
  AddRows(table, {"Resize"},
          {CheckResize, OneOf("mode", {"nearest", "linear", "cubic"}),
           OneOf("coordinate_transformation_mode", CoordinateModes()),
           OneOf("nearest_mode", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", ""}),
           OneOf("keep_aspect_ratio_policy", {"stretch", "not_larger", "not_smaller"})});
  AddRows(table, {"Upsample"}, {CheckUpsample, OneOf("mode", {"nearest", "linear", "bilinear"})});
  AddRows(table, {"GridSample"},
          {CheckGridSample, OneOf("padding_mode", {"zeros", "border", "reflection"}),
           OneOf("mode", {"linear", "nearest", "cubic", "bilinear", "bicubic"})});
  AddRows(table, {"AffineGrid"}, {RankIs(0, 3), RankIs(1, 1)});
  AddRows(table, {"ImageDecoder"},
          {RankIs(0, 1), OneOf("pixel_format", {"RGB", "BGR", "Grayscale"})});
  AddRows(table, {"NonMaxSuppression"},
          {RankIs(0, 3), RankIs(1, 3), Scalar(2), Scalar(3), Scalar(4),
           OneOfNumbers("center_point_box", {0, 1})});
  AddRows(table, {"DFT"}, {CheckTransform, PositiveInput(1)});
  AddRows(table, {"STFT"}, {RankAtLeast(0, 2), PositiveInput(1), RankIs(2, 1), PositiveInput(3)});
  AddRows(table, {"BlackmanWindow", "HammingWindow", "HannWindow"},
          {Scalar(0), ElementType("output_datatype")});
  AddRows(table, {"MelWeightMatrix"},
          {ElementType("output_datatype"), PositiveInput(0), PositiveInput(1), PositiveInput(2),
           Scalar(3), Scalar(4)});
  AddRows(table, {"StringNormalizer"}, {OneOf("case_change_action", {"LOWER", "UPPER", "NONE"})});
  AddRows(table, {"TfIdfVectorizer"},
          {CheckGrams, OneOf("mode", {"TF", "IDF", "TFIDF"}), InRange("max_skip_count", 0),
           EachInRange("ngram_counts", 0), EachInRange("ngram_indexes", 0),
           SameLength({"ngram_indexes", "weights"})});
  AddRows(table, {"StringConcat", "StringSplit", "RegexFullMatch"}, {});
}

}  // namespace onward::constraints
