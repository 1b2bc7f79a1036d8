// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "tests/ops/cases.h"

namespace onward {
namespace {

using List = std::vector<int64_t>;

Attributes Mode(const char* mode, const char* coordinates, Attributes more = {}) {
  more["mode"] = mode;
  more["coordinate_transformation_mode"] = coordinates;
  return more;
}

OpCase Scaled(const char* name, Shape x, std::vector<double> scales, Attributes attributes) {
  return Case(name, {Real(std::move(x)), Omitted(), FloatList(std::move(scales))},
              std::move(attributes));
}

OpCase Sized(const char* name, Shape x, List sizes, Attributes attributes) {
  return Case(name, {Real(std::move(x)), Omitted(), Omitted(), Ints(std::move(sizes))},
              std::move(attributes));
}

std::vector<OpCase> NearestCases() {
  return {
      Scaled("Resize", {2, 2, 2, 3}, {1, 1, 2, 2}, {}),
      Scaled("Resize_uneven", {1, 2, 3, 4}, {1, 1, 1.7, 0.6}, {}),
      Scaled("Resize_tripled", {1, 1, 2, 2}, {1, 1, 3, 3}, Mode("nearest", "asymmetric")),
      Scaled("Resize_floor", {1, 2, 3, 4}, {1, 1, 1.5, 2.5},
             Mode("nearest", "asymmetric", {{"nearest_mode", "floor"}})),
      Scaled("Resize_ceil", {1, 2, 3, 4}, {1, 1, 1.5, 2.5},
             Mode("nearest", "half_pixel", {{"nearest_mode", "ceil"}})),
      Scaled("Resize_prefer_ceil", {1, 1, 4, 4}, {1, 1, 2.5, 0.5},
             Mode("nearest", "asymmetric", {{"nearest_mode", "round_prefer_ceil"}})),
      Sized("Resize_channels", {1, 2, 3, 2}, {1, 4, 3, 4}, Mode("nearest", "align_corners")),
      Sized("Resize_tf_half_pixel", {1, 1, 4, 5}, {1, 1, 3, 7},
            Mode("nearest", "tf_half_pixel_for_nn", {{"nearest_mode", "floor"}})),
      Sized("Resize_tf_half_pixel_channels", {1, 2, 3, 4}, {1, 2, 6, 4},
            Mode("nearest", "tf_half_pixel_for_nn", {{"nearest_mode", "ceil"}})),
      Sized("Resize_line", {7}, {4}, {}),
      Sized("Resize_same", {2, 3}, {2, 3}, {}),
  };
}

std::vector<OpCase> LinearCases() {
  return {
      Scaled("Resize_linear", {2, 2, 3, 4}, {1, 1, 2, 2}, Mode("linear", "half_pixel"))
          .Unknown({0}),
      Scaled("Resize_linear_uneven", {1, 2, 3, 4}, {1, 1, 1.3, 0.7},
             Mode("linear", "half_pixel_symmetric")),
      Sized("Resize_linear_corners", {1, 2, 3, 4}, {1, 2, 5, 7}, Mode("linear", "align_corners"))
          .Unknown({0}),
      Sized("Resize_linear_one", {1, 1, 3, 4}, {1, 1, 1, 3}, Mode("linear", "pytorch_half_pixel")),
      Scaled("Resize_linear_asymmetric", {1, 1, 4, 4}, {1, 1, 0.5, 1.5},
             Mode("linear", "asymmetric")),
      Sized("Resize_linear_volume", {1, 2, 2, 3, 3}, {1, 2, 3, 2, 5}, Mode("linear", "half_pixel")),
      Sized("Resize_linear_last", {1, 3, 3, 2}, {5, 4},
            Mode("linear", "half_pixel", {{"axes", List{2, 1}}})),
      Sized("Resize_linear_line", {2, 5}, {2, 8}, Mode("linear", "half_pixel")),
      Scaled("Resize_linear_antialias", {1, 1, 7, 6}, {1, 1, 0.4, 0.6},
             Mode("linear", "half_pixel", {{"antialias", 1}})),
      Sized("Resize_not_larger", {1, 1, 4, 6}, {7, 8},
            Mode("linear", "half_pixel",
                 {{"axes", List{2, 3}}, {"keep_aspect_ratio_policy", "not_larger"}})),
      Sized("Resize_not_smaller", {1, 1, 4, 6}, {3, 3},
            Mode("linear", "half_pixel",
                 {{"axes", List{2, 3}}, {"keep_aspect_ratio_policy", "not_smaller"}})),
      Case("Resize_crop",
           {Real({1, 2, 4, 5}), FloatList({0.2, 0.1, 0.9, 0.7}), Omitted(), Ints({3, 4})},
           Mode("linear", "tf_crop_and_resize", {{"axes", List{2, 3}}})),
      Case("Resize_crop_beyond",
           {Real({1, 1, 4, 5}), FloatList({0, 0, 0.4, -0.2, 1, 1, 1.3, 0.7}), Omitted(),
            Ints({1, 1, 4, 5})},
           Mode("linear", "tf_crop_and_resize", {{"extrapolation_value", 3.0f}})),
  };
}

std::vector<OpCase> CubicCases() {
  return {
      Scaled("Resize_cubic", {1, 2, 4, 4}, {1, 1, 1.5, 2}, Mode("cubic", "half_pixel")),
      Scaled("Resize_cubic_inside", {1, 1, 4, 4}, {1, 1, 0.8, 1.5},
             Mode("cubic", "half_pixel", {{"cubic_coeff_a", -0.5f}, {"exclude_outside", 1}})),
      Sized("Resize_cubic_antialias", {1, 1, 9, 8}, {1, 1, 4, 3},
            Mode("cubic", "half_pixel", {{"antialias", 1}})),
      Sized("Resize_cubic_corners", {1, 1, 4, 4}, {1, 1, 7, 3}, Mode("cubic", "align_corners")),
      Case("ResizeGrad",
           {Real({1, 1, 4, 6}), Real({1, 1, 2, 3}), Omitted(), FloatList({1, 1, 2, 2})},
           Mode("linear", "half_pixel"))
          .By({0})
          .Own(),
      Sized("Resize_cubic_first", {4, 3}, {6, 3}, Mode("cubic", "asymmetric")),
  };
}

std::vector<OpCase> FoldCases() {
  return {
      Case("Col2Im", {Real({2, 8, 4}), Ints({3, 3}), Ints({2, 2})}),
      Case("Col2Im_windows", {Real({1, 6, 6}), Ints({5, 4}), Ints({3, 2})},
           {{"dilations", List{1, 2}}, {"pads", List{1, 0, 1, 2}}, {"strides", List{2, 2}}}),
      Case("Col2Im_line", {Real({1, 4, 4}), Ints({5}), Ints({2})}),
      Case("Col2Im_volume", {Real({1, 8, 4}), Ints({2, 3, 3}), Ints({2, 2, 2})}),
      Case("MaxUnpool_larger",
           {Real({1, 2, 2, 2}), Fed({1, 2, 2, 2}, {5, 7, 8, 15, 16, 22, 27, 31}),
            Ints({1, 2, 5, 5})},
           {{"kernel_shape", List{2, 2}}, {"strides", List{2, 2}}})
          .DataDependent(),
      Case("MaxUnpool_line", {Real({1, 1, 3}), Fed({1, 1, 3}, {0, 3, 4})},
           {{"kernel_shape", List{2}}, {"strides", List{2}}}),
  };
}

OpCase Sampled(const char* name, Shape x, Shape grid, Attributes attributes) {
  return Case(name, {Real(std::move(x)), Real(std::move(grid), -1.4, 1.4)}, std::move(attributes));
}

std::vector<OpCase> SamplingCases() {
  std::vector<OpCase> cases;
  for (const std::string mode : {"linear", "cubic"}) {
    for (const std::string padding : {"zeros", "border", "reflection"}) {
      for (const int64_t corners : {0, 1}) {
        const std::string name =
            absl::StrCat("GridSample_", mode, "_", padding, corners ? "_corners" : "");
        cases.push_back(
            Sampled(name.c_str(), {1, 2, 3, 4}, {1, 2, 3, 2},
                    {{"mode", mode}, {"padding_mode", padding}, {"align_corners", corners}}));
      }
    }
  }
  for (OpCase& c : std::vector<OpCase>{
           Sampled("GridSample", {2, 2, 3, 3}, {2, 2, 2, 2}, {}).Unknown({0, 1}),
           Sampled("GridSample_volume", {1, 2, 2, 3, 3}, {1, 2, 1, 2, 3}, {}),
           Sampled("GridSample_volume_border", {1, 1, 3, 2, 3}, {1, 2, 2, 1, 3},
                   {{"padding_mode", "border"}, {"align_corners", 1}}),
           Sampled("GridSample_nearest", {1, 2, 3, 4}, {1, 2, 3, 2}, {{"mode", "nearest"}}),
           Sampled("GridSample_nearest_reflection", {1, 2, 3, 4}, {1, 2, 3, 2},
                   {{"mode", "nearest"}, {"padding_mode", "reflection"}}),
           Case("AffineGrid", {Real({2, 2, 3}), Ints({2, 3, 3, 4})}),
           Case("AffineGrid_corners", {Real({1, 2, 3}), Ints({1, 1, 3, 2})},
                {{"align_corners", 1}}),
           Case("AffineGrid_volume", {Real({1, 3, 4}), Ints({1, 1, 2, 3, 2})}),
       }) {
    cases.push_back(std::move(c));
  }
  return cases;
}

OpCase Aligned(const char* name, Attributes attributes) {
  attributes["output_height"] = 2;
  attributes["output_width"] = 3;
  return Case(name, {Real({2, 2, 4, 5}), Real({3, 4}, -0.5, 6), Fed({3}, {1, 0, 1})},
              std::move(attributes))
      .By({0});
}

// Regions of two pictures of 6 by 7 pixels: one inside, one over the border, one beyond it, one
// smaller than its bins, one whose corners stand on halves.
Arg Regions() {
  return ConstantNumbers({5, 5}, {1,  1, 0, 5, 4, 0,   -2,  3, 9,   8,   1,   20, 3,
                                  25, 8, 0, 2, 2, 2.2, 2.4, 1, 0.5, 1.5, 4.5, 3.5});
}

OpCase Pooled(const char* name, Attributes attributes) {
  return Case(name, {Real({2, 2, 6, 7}), Regions()}, std::move(attributes)).By({0});
}

std::vector<OpCase> RegionCases() {
  const char* corner = "output_half_pixel";
  return {
      Aligned("RoiAlign", {{"coordinate_transformation_mode", corner}}).Unknown({0}),
      Aligned("RoiAlign_ratio", {{"sampling_ratio", 2}, {"spatial_scale", 0.75f}}),
      Aligned("RoiAlign_half_pixel", {}),
      Aligned("RoiAlign_max",
              {{"coordinate_transformation_mode", corner}, {"mode", "max"}, {"sampling_ratio", 2}}),
      Aligned("RoiAlign_max_adaptive",
              {{"coordinate_transformation_mode", corner}, {"mode", "max"}}),
      Pooled("MaxRoiPool", {{"pooled_shape", List{2, 3}}}).Unknown({0}),
      Pooled("MaxRoiPool_scale", {{"pooled_shape", List{3, 2}}, {"spatial_scale", 0.5f}}),
      Pooled("MaxRoiPool_one", {{"pooled_shape", List{1, 1}}}),
  };
}

std::vector<OpCase> DeformCases() {
  return {
      Case("DeformConv", {Real({2, 2, 3, 3}), Real({3, 2, 2, 2}), Real({2, 8, 2, 2}, -1.3, 1.3)}),
      Case("DeformConv_all",
           {Real({1, 4, 4, 3}), Real({2, 2, 2, 2}), Real({1, 16, 4, 2}, -1.3, 1.3), Real({2}),
            Positive({1, 8, 4, 2})},
           {{"group", 2}, {"offset_group", 2}, {"pads", List{1, 0, 0, 0}}}),
      Case("DeformConv_strides",
           {Real({1, 1, 5, 5}), Real({1, 1, 2, 2}), Real({1, 8, 3, 2}, -0.9, 0.9), Omitted(),
            Positive({1, 4, 3, 2})},
           {{"dilations", List{2, 2}}, {"pads", List{1, 0, 1, 0}}, {"strides", List{2, 2}}}),
      Case("DeformColumns", {Real({1, 2, 3, 3}), Real({1, 8, 2, 2}, -1.3, 1.3)},
           {{"kernel_shape", List{2, 2}}})
          .Own(),
      Case("DeformConv_line", {Real({1, 2, 5}), Real({1, 2, 2}), Real({1, 2, 4}, -1.3, 1.3)}),
  };
}

}  // namespace

std::vector<OpCase> ImageCases() {
  std::vector<OpCase> cases;
  for (auto* table : {NearestCases, LinearCases, CubicCases, FoldCases, SamplingCases, RegionCases,
                      DeformCases}) {
    for (OpCase& c : table()) cases.push_back(std::move(c));
  }
  return cases;
}

std::vector<OpCase> ImageGradientCases() {
  const auto own = [](const char* name, std::vector<Arg> args, Attributes attributes = {}) {
    return Case(name, std::move(args), std::move(attributes)).Own();
  };
  const Attributes kernel = {{"kernel_shape", List{2, 2}}};
  return {
      own("GridSampleGrad", {Real({1, 2, 2, 3}), Real({1, 2, 3, 4}), Real({1, 2, 3, 2}, -1.4, 1.4)})
          .Outputs(2, {0, 1}),
      own("RoiAlignGrad",
          {Real({3, 2, 1, 1}), Real({2, 2, 4, 5}), Real({3, 4}, -0.5, 6), Fed({3}, {1, 0, 1})})
          .By({0}),
      own("MaxRoiPoolGrad", {Real({5, 2, 2, 3}), Real({2, 2, 6, 7}), Regions()},
          {{"pooled_shape", List{2, 3}}})
          .By({0}),
      own("DeformColumnsGrad",
          {Real({1, 2, 4, 4}), Real({1, 2, 3, 3}), Real({1, 8, 2, 2}, -1.3, 1.3),
           Positive({1, 4, 2, 2})},
          kernel)
          .Outputs(3, {0, 1, 2}),
  };
}

std::vector<OpCase> UnruledImageCases() {
  const auto suppression = [](const char* name, std::vector<Arg> limits, Attributes attributes) {
    std::vector<Arg> args = {Real({2, 7, 4}, 0, 2, {}), Real({2, 3, 7}, -2, 2, {})};
    for (Arg& limit : limits) args.push_back(std::move(limit));
    return Case(name, std::move(args), std::move(attributes)).DataDependent();
  };
  return {
      suppression("NonMaxSuppression", {Ints({3}), FloatList({0.2})}, {}),
      suppression("NonMaxSuppression_scores", {Ints({5}), FloatList({0.1}), FloatList({-0.5})},
                  {{"center_point_box", 1}}),
      suppression("NonMaxSuppression_none", {}, {}),
  };
}

}  // namespace onward
