// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/cases.h"

namespace onward {
namespace {

using List = std::vector<int64_t>;

std::vector<OpCase> PlainCases() {
  return {
      Case("Conv", {Real({2, 2, 4, 5}), Real({3, 2, 3, 2}), Real({3})}).Unknown({0}),
      Case("Conv_no_bias", {Real({1, 2, 4, 4}), Real({2, 2, 3, 3})}),
      Case("Conv_pointwise", {Real({2, 3, 2, 2}), Real({4, 3, 1, 1}), Real({4})}).Unknown({0}),
      Case("Conv_pads", {Real({1, 2, 3, 4}), Real({2, 2, 3, 3}), Real({2})},
           {{"pads", List{1, 0, 2, 1}}}),
      Case("Conv_strides", {Real({1, 2, 6, 5}), Real({2, 2, 2, 3})}, {{"strides", List{2, 3}}}),
      Case("Conv_strides_uncovered", {Real({1, 1, 6, 6}), Real({1, 1, 2, 2})},
           {{"strides", List{3, 3}}}),
      Case("Conv_dilations", {Real({1, 1, 6, 6}), Real({2, 1, 2, 2})},
           {{"dilations", List{2, 3}}, {"pads", List{1, 1, 1, 1}}}),
      Case("Conv_all", {Real({2, 2, 7, 6}), Real({2, 1, 3, 2}), Real({2})},
           {{"dilations", List{2, 1}},
            {"group", 2},
            {"pads", List{1, 1, 0, 1}},
            {"strides", List{2, 2}}}),
      Case("Conv_groups", {Real({2, 4, 3, 3}), Real({6, 2, 2, 2}), Real({6})}, {{"group", 2}})
          .Unknown({0}),
      Case("Conv_depthwise", {Real({1, 3, 4, 4}), Real({3, 1, 3, 3}), Real({3})},
           {{"group", 3}, {"pads", List{1, 1, 1, 1}}})
          .Unknown({0}),
      Case("Conv_pointwise_blocks", {Real({2, 9, 3, 2}), Real({10, 9, 1, 1}), Real({10})}),
      Case("Conv_depthwise_blocks", {Real({2, 10, 5, 4}), Real({10, 1, 3, 3}), Real({10})},
           {{"group", 10}, {"pads", List{1, 1, 0, 2}}, {"strides", List{2, 2}}}),
      Case("Conv_depthwise_multiplied", {Real({1, 2, 3, 3}), Real({4, 1, 2, 2})}, {{"group", 2}}),
      Case("Conv_same_upper", {Real({1, 1, 5, 4}), Real({2, 1, 3, 2})},
           {{"auto_pad", "SAME_UPPER"}, {"strides", List{2, 1}}})
          .Unknown({0}),
      Case("Conv_same_lower", {Real({1, 1, 5, 4}), Real({2, 1, 2, 2})},
           {{"auto_pad", "SAME_LOWER"}}),
      Case("Conv_valid", {Real({1, 1, 4, 4}), Real({1, 1, 2, 2})}, {{"auto_pad", "VALID"}}),
      Case("Conv_1d", {Real({2, 2, 6}), Real({3, 2, 3}), Real({3})},
           {{"pads", List{1, 1}}, {"strides", List{2}}})
          .Unknown({0}),
      Case("Conv_3d", {Real({1, 2, 3, 3, 3}), Real({2, 2, 2, 2, 2}), Real({2})},
           {{"pads", List{1, 0, 0, 0, 1, 0}}}),
      Case("Conv_3d_strides", {Real({1, 1, 4, 3, 4}), Real({1, 1, 2, 1, 2})},
           {{"strides", List{2, 1, 2}}}),
      Case("Conv_bias_only", {Real({1, 1, 3, 3}), Real({2, 1, 2, 2}), Real({2})}).By({2}),
  };
}

std::vector<OpCase> TransposedCases() {
  return {
      Case("ConvTranspose", {Real({2, 2, 3, 3}), Real({2, 3, 2, 3}), Real({3})}).Unknown({0}),
      Case("ConvTranspose_strides", {Real({1, 2, 3, 2}), Real({2, 1, 3, 2})},
           {{"strides", List{2, 3}}}),
      Case("ConvTranspose_pads", {Real({1, 1, 3, 3}), Real({1, 2, 3, 3}), Real({2})},
           {{"pads", List{1, 0, 0, 1}}, {"strides", List{2, 2}}}),
      Case("ConvTranspose_output_padding", {Real({1, 1, 3, 3}), Real({1, 1, 3, 3})},
           {{"output_padding", List{1, 1}}, {"pads", List{1, 1, 1, 1}}, {"strides", List{2, 2}}}),
      Case("ConvTranspose_output_padding_beyond", {Real({1, 1, 2, 2}), Real({1, 1, 2, 2})},
           {{"output_padding", List{1, 1}}, {"strides", List{2, 2}}}),
      Case("ConvTranspose_output_shape", {Real({1, 1, 3, 3}), Real({1, 1, 3, 3})},
           {{"output_shape", List{6, 5}}, {"strides", List{2, 2}}}),
      Case("ConvTranspose_dilations", {Real({1, 1, 3, 3}), Real({1, 2, 2, 2})},
           {{"dilations", List{2, 2}}}),
      Case("ConvTranspose_groups", {Real({1, 4, 2, 3}), Real({4, 2, 2, 2})}, {{"group", 2}}),
      Case("ConvTranspose_same_upper", {Real({1, 1, 3, 3}), Real({1, 1, 3, 3})},
           {{"auto_pad", "SAME_UPPER"}, {"strides", List{2, 2}}}),
      Case("ConvTranspose_same_lower", {Real({1, 1, 3, 3}), Real({1, 1, 3, 3})},
           {{"auto_pad", "SAME_LOWER"}, {"strides", List{2, 2}}}),
      Case("ConvTranspose_1d", {Real({2, 2, 4}), Real({2, 2, 3}), Real({2})},
           {{"strides", List{2}}}),
      Case("ConvTranspose_3d", {Real({1, 1, 2, 2, 2}), Real({1, 2, 2, 2, 2})},
           {{"strides", List{1, 2, 1}}}),
  };
}

}  // namespace

std::vector<OpCase> ConvCases() {
  std::vector<OpCase> cases = PlainCases();
  for (OpCase& c : TransposedCases()) cases.push_back(std::move(c));
  return cases;
}

}  // namespace onward
