// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/cases.h"

namespace onward {
namespace {

using List = std::vector<int64_t>;
constexpr int64_t kEnd = INT64_MAX;

std::vector<OpCase> MovingCases() {
  return {
      Case("Reshape", {Real({2, 6}), Ints({3, 4})}),
      Case("Reshape_rest", {Real({2, 6}), Ints({0, 2, -1})}).Unknown({0}),
      Case("Reshape_scalar", {Real({1}), Ints({})}),
      Case("Flatten", {Real({2, 3, 2})}).Unknown({0}),
      Case("Flatten_axis0", {Real({2, 3})}, {{"axis", 0}}),
      Case("Flatten_negative", {Real({2, 3, 2})}, {{"axis", -1}}),
      Case("Squeeze", {Real({1, 3, 1})}),
      Case("Squeeze_axes", {Real({1, 3, 1}), Ints({-1})}),
      Case("Unsqueeze", {Real({2, 3}), Ints({0, -1})}),
      Case("Expand", {Real({3, 1}), Ints({2, 3, 4})}),
      Case("Expand_smaller_shape", {Real({2, 3, 4}), Ints({3, 1})}),
      Case("Expand_fed", {Real({3, 1}), Fed({2}, {3, 4})}).DataDependent(),
      Case("Tile", {Real({2, 3}), Ints({2, 3})}).Unknown({0}),
      Case("Tile_ones", {Real({2, 3}), Ints({1, 1})}),
      Case("Tile_fed", {Real({2, 3}), Fed({2}, {3, 2})}).DataDependent(),
      Case("Concat", {Real({2, 3}), Real({2, 1}), Real({2, 2})}, {{"axis", 1}}).Unknown({0, 1, 2}),
      Case("Concat_first", {Real({2, 3}), Real({1, 3})}, {{"axis", 0}}),
      Case("Concat_negative", {Real({2, 3, 2}), Real({2, 3, 1})}, {{"axis", -1}}),
      Case("Concat_one", {Real({2, 3})}, {{"axis", 0}}),
      Case("Split_sizes", {Real({2, 6}), Ints({1, 3, 2})}, {{"axis", 1}}).Outputs(3, {0, 1, 2}),
      Case("Split_one_used", {Real({2, 6}), Ints({1, 3, 2})}, {{"axis", -1}}).Outputs(3, {1}),
      Case("Split_equal", {Real({6, 2})}, {{"num_outputs", 3}}).Outputs(3, {0, 1, 2}),
      Case("Split_uneven", {Real({2, 5})}, {{"axis", 1}, {"num_outputs", 2}}).Outputs(2, {0, 1}),
      Case("Transpose", {Real({2, 3, 4})}),
      Case("Transpose_perm", {Real({2, 3, 4})}, {{"perm", List{1, 2, 0}}}).Unknown({0}),
      Case("DepthToSpace", {Real({1, 8, 2, 3})}, {{"blocksize", 2}}),
      Case("DepthToSpace_crd", {Real({1, 8, 2, 3})}, {{"blocksize", 2}, {"mode", "CRD"}}),
      Case("SpaceToDepth", {Real({1, 2, 4, 6})}, {{"blocksize", 2}}),
      Case("CenterCropPad", {Real({4, 5}), Ints({2, 7})}),
      Case("CenterCropPad_axes", {Real({3, 4, 2}), Ints({5})}, {{"axes", List{1}}}),
      Case("Trilu", {Real({3, 4})}),
      Case("Trilu_lower", {Real({2, 3, 4}), Int(1)}, {{"upper", 0}}),
      Case("Trilu_below", {Real({3, 4}), Int(-1)}),
      Case("ReverseSequence", {Real({4, 3}), Ints({1, 4, 2})}),
      Case("ReverseSequence_batch_first", {Real({3, 4}), Ints({1, 4, 2})},
           {{"batch_axis", 0}, {"time_axis", 1}}),
  };
}

std::vector<OpCase> WindowCases() {
  return {
      Case("Slice", {Real({4, 5}), Ints({1}), Ints({3})}),
      Case("Slice_axes", {Real({4, 5}), Ints({1, 0}), Ints({3, 2}), Ints({1, 0})}),
      Case("Slice_negative", {Real({4, 5}), Ints({-3}), Ints({-1}), Ints({-1})}).Unknown({0}),
      Case("Slice_beyond", {Real({4, 5}), Ints({2}), Ints({kEnd}), Ints({1})}),
      Case("Slice_whole", {Real({4, 5}), Ints({0}), Ints({kEnd}), Ints({1})}),
      Case("Slice_step", {Real({2, 7}), Ints({1}), Ints({7}), Ints({1}), Ints({3})}),
      Case("Slice_backwards", {Real({2, 7}), Ints({-1}), Ints({-8}), Ints({1}), Ints({-2})}),
      // The standard's start stays on the first element, where Python's is before it.
      Case("Slice_backwards_from_before",
           {Real({3, 7}), Ints({-9, 5}), Ints({-20, -20}), Ints({1, 0}), Ints({-2, -1})}),
      Case("Slice_two_steps",
           {Real({5, 7}), Ints({0, 6}), Ints({5, 0}), Ints({0, 1}), Ints({2, -3})}),
      Case("Slice_fed", {Real({4, 5}), Fed({1}, {1}), Fed({1}, {3}), Ints({1})}).DataDependent(),
      Case("Pad", {Real({2, 3}), Ints({1, 0, 2, 1})}).Unknown({0}),
      Case("Pad_value", {Real({2, 3}), Ints({0, 2, 1, 0}), Real({})}),
      Case("Pad_negative", {Real({4, 5}), Ints({-1, 1, 0, -2})}),
      Case("Pad_axes", {Real({2, 3, 4}), Ints({1, 2}), Omitted(), Ints({-1})}),
      Case("Pad_reflect", {Real({3, 4}), Ints({1, 2, 2, 3})}, {{"mode", "reflect"}}),
      Case("Pad_edge", {Real({3, 4}), Ints({1, 2, 0, 3})}, {{"mode", "edge"}}),
      Case("Pad_wrap", {Real({3, 4}), Ints({1, 2, 0, 3})}, {{"mode", "wrap"}}),
      Case("Pad_fed", {Real({2, 3}), Fed({4}, {1, 0, 2, 1})}).DataDependent(),
      Case("Range", {Real({}, 0.4, 0.6), Number(3.1), Real({}, 0.6, 0.7)}).DataDependent(),
  };
}

}  // namespace

std::vector<OpCase> ShapeCases() {
  std::vector<OpCase> cases = MovingCases();
  for (OpCase& c : WindowCases()) cases.push_back(std::move(c));
  return cases;
}

}  // namespace onward
