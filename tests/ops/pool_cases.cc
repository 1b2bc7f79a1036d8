// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/cases.h"

namespace onward {
namespace {

using List = std::vector<int64_t>;

std::vector<OpCase> MaxCases() {
  return {
      Case("MaxPool", {Real({2, 2, 4, 4})}, {{"kernel_shape", List{2, 2}}, {"strides", List{2, 2}}})
          .Unknown({0}),
      Case("MaxPool_overlap", {Real({1, 2, 5, 4})}, {{"kernel_shape", List{3, 2}}}),
      Case("MaxPool_pads", {Real({1, 1, 5, 5})},
           {{"kernel_shape", List{3, 3}}, {"pads", List{1, 1, 1, 1}}, {"strides", List{2, 2}}}),
      Case("MaxPool_ceil", {Real({1, 2, 6, 5})},
           {{"ceil_mode", 1}, {"kernel_shape", List{3, 2}}, {"strides", List{2, 2}}}),
      Case("MaxPool_dilations", {Real({1, 1, 6, 6})},
           {{"dilations", List{2, 2}}, {"kernel_shape", List{2, 3}}}),
      Case("MaxPool_same_upper", {Real({1, 1, 5, 4})},
           {{"auto_pad", "SAME_UPPER"}, {"kernel_shape", List{3, 3}}, {"strides", List{2, 2}}}),
      Case("MaxPool_same_lower", {Real({1, 1, 5, 4})},
           {{"auto_pad", "SAME_LOWER"}, {"kernel_shape", List{2, 2}}}),
      Case("MaxPool_1d", {Real({2, 2, 7})}, {{"kernel_shape", List{3}}, {"strides", List{2}}}),
      Case("MaxPool_3d", {Real({1, 1, 3, 4, 3})},
           {{"kernel_shape", List{2, 2, 2}}, {"strides", List{1, 2, 1}}}),
      Case("MaxPool_with_indices", {Real({1, 2, 4, 4})},
           {{"kernel_shape", List{2, 2}}, {"strides", List{2, 2}}})
          .Outputs(2, {0}),
      Case("GlobalMaxPool", {Real({2, 2, 3, 3})}).Unknown({0}),
      Case("GlobalMaxPool_1d", {Real({2, 2, 5})}),
      Case("MaxUnpool", {Real({1, 1, 2, 2}), Fed({1, 1, 2, 2}, {5, 7, 8, 15})},
           {{"kernel_shape", List{2, 2}}, {"strides", List{2, 2}}}),
  };
}

std::vector<OpCase> MeanCases() {
  return {
      Case("AveragePool", {Real({2, 2, 4, 4})},
           {{"kernel_shape", List{2, 2}}, {"strides", List{2, 2}}})
          .Unknown({0}),
      Case("AveragePool_overlap", {Real({1, 2, 5, 4})}, {{"kernel_shape", List{3, 2}}}),
      Case("AveragePool_pads", {Real({1, 1, 5, 5})},
           {{"kernel_shape", List{3, 3}}, {"pads", List{1, 1, 0, 1}}, {"strides", List{2, 2}}}),
      Case("AveragePool_include_pad", {Real({1, 1, 5, 5})},
           {{"count_include_pad", 1},
            {"kernel_shape", List{3, 3}},
            {"pads", List{1, 1, 1, 1}},
            {"strides", List{2, 2}}}),
      Case("AveragePool_ceil", {Real({1, 1, 6, 5})},
           {{"ceil_mode", 1}, {"kernel_shape", List{3, 2}}, {"strides", List{2, 2}}}),
      Case("AveragePool_ceil_include_pad", {Real({1, 1, 6, 5})},
           {{"ceil_mode", 1},
            {"count_include_pad", 1},
            {"kernel_shape", List{3, 2}},
            {"pads", List{1, 0, 0, 1}},
            {"strides", List{2, 2}}}),
      Case("AveragePool_dilations", {Real({1, 1, 6, 6})},
           {{"dilations", List{2, 2}}, {"kernel_shape", List{2, 3}}}),
      Case("AveragePool_same_upper", {Real({1, 1, 5, 4})},
           {{"auto_pad", "SAME_UPPER"}, {"kernel_shape", List{3, 3}}, {"strides", List{2, 2}}}),
      Case("AveragePool_1d", {Real({2, 2, 7})}, {{"kernel_shape", List{3}}, {"strides", List{2}}}),
      Case("AveragePool_3d", {Real({1, 1, 3, 4, 3})},
           {{"kernel_shape", List{2, 2, 2}}, {"strides", List{1, 2, 1}}}),
      Case("GlobalAveragePool", {Real({2, 2, 3, 3})}).Unknown({0}),
      Case("GlobalAveragePool_1d", {Real({2, 2, 5})}),
      Case("LpPool", {Real({1, 2, 4, 4})}, {{"kernel_shape", List{2, 2}}, {"strides", List{2, 2}}}),
      Case("LpPool_p1", {Real({1, 1, 4, 4})}, {{"kernel_shape", List{2, 2}}, {"p", 1}}),
      Case("LpPool_p3", {Real({1, 1, 4, 4})},
           {{"kernel_shape", List{2, 2}}, {"p", 3}, {"pads", List{1, 0, 0, 1}}}),
      Case("GlobalLpPool", {Real({2, 2, 3, 3})}),
      Case("GlobalLpPool_p3", {Real({2, 2, 3})}, {{"p", 3}}),
  };
}

}  // namespace

std::vector<OpCase> PoolCases() {
  std::vector<OpCase> cases = MaxCases();
  for (OpCase& c : MeanCases()) cases.push_back(std::move(c));
  return cases;
}

}  // namespace onward
