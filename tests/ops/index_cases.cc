// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/cases.h"

namespace onward {

std::vector<OpCase> IndexCases() {
  return {
      Case("Gather", {Real({4, 3}), Below({2, 3}, 4)}).Unknown({1}),
      Case("Gather_axis", {Real({2, 5, 2}), Below({4}, 5)}, {{"axis", 1}}).Unknown({0}),
      Case("Gather_negative_axis", {Real({2, 5}), Below({3}, 5)}, {{"axis", -1}}),
      Case("Gather_negative_indices", {Real({4, 3}), Fed({4}, {-1, 0, -4, -1})}),
      Case("Gather_scalar", {Real({4, 3}), Int(2)}),
      Case("GatherElements", {Real({3, 3}), Below({2, 3}, 3)}),
      Case("GatherElements_axis", {Real({3, 4}), Below({3, 2}, 4)}, {{"axis", 1}}),
      Case("GatherElements_negative", {Real({2, 3}), Fed({2, 2}, {-1, 0, -3, -3})}, {{"axis", -1}}),
      Case("GatherND", {Real({3, 4}), Fed({3, 2}, {0, 1, 2, 3, 0, 1})}),
      Case("GatherND_slices", {Real({3, 4}), Fed({2, 1}, {2, -1})}),
      Case("GatherND_batch", {Real({2, 3, 2}), Fed({2, 1}, {1, 0})}, {{"batch_dims", 1}}),
      Case("ScatterElements", {Real({3, 3}), Fed({2, 3}, {1, 0, 2, 0, 2, 1}), Real({2, 3})}),
      Case("ScatterElements_axis", {Real({2, 5}), Fed({2, 2}, {1, 3, 0, -1}), Real({2, 2})},
           {{"axis", 1}}),
      Case("ScatterElements_add", {Real({3, 3}), Fed({2, 3}, {1, 0, 2, 1, 0, 2}), Real({2, 3})},
           {{"reduction", "add"}}),
      Case("ScatterND", {Real({4, 3}), Fed({2, 1}, {3, 1}), Real({2, 3})}),
      Case("ScatterND_add", {Real({4, 3}), Fed({3, 1}, {3, 1, 3}), Real({3, 3})},
           {{"reduction", "add"}}),
      Case("ScatterND_elements", {Real({4, 3}), Fed({2, 2}, {3, 1, 0, 2}), Real({2})}),
      Case("ScatterElements_mul", {Real({3, 3}), Fed({2, 3}, {1, 0, 2, 1, 2, 1}), Real({2, 3})},
           {{"reduction", "mul"}}),
      Case("ScatterElements_max", {Real({3, 3}), Fed({2, 3}, {1, 0, 2, 1, 2, 1}), Real({2, 3})},
           {{"reduction", "max"}}),
      Case("ScatterElements_min", {Real({3, 3}), Fed({2, 3}, {1, 0, 2, 1, 2, 1}), Real({2, 3})},
           {{"reduction", "min"}}),
      Case("ScatterElements_max_axis", {Real({2, 5}), Fed({2, 2}, {1, 1, 0, -1}), Real({2, 2})},
           {{"axis", 1}, {"reduction", "max"}}),
      Case("ScatterND_mul", {Real({4, 3}), Fed({3, 1}, {3, 1, 3}), Real({3, 3})},
           {{"reduction", "mul"}}),
      Case("ScatterND_max", {Real({4, 3}), Fed({3, 1}, {3, 1, 3}), Real({3, 3})},
           {{"reduction", "max"}})
          .Unknown({0}),
      Case("ScatterND_min", {Real({4, 3}), Fed({3, 1}, {3, 1, 3}), Real({3, 3})},
           {{"reduction", "min"}}),
      Case("TensorScatter", {Real({2, 4, 3}), Real({2, 2, 3}), Fed({2}, {1, 2})}),
      Case("TensorScatter_front", {Real({2, 1, 4, 2}), Real({2, 1, 3, 2})}),
      Case("TensorScatter_circular", {Real({2, 4, 2}), Real({2, 3, 2}), Fed({2}, {3, 9})},
           {{"mode", "circular"}}),
      Case("TensorScatter_axis", {Real({2, 2, 3}), Real({2, 2, 1}), Fed({2}, {0, 2})},
           {{"axis", -1}}),
      Case("OneHot", {Fed({3}, {0, 2, -1}), Int(4), Real({2})}),
      Case("OneHot_axis", {Fed({3}, {0, 2, 1}), Int(3), Real({2})}, {{"axis", 0}}),
      Case("TopK", {Real({2, 5}), Ints({2})}).Outputs(2, {0}),
      Case("TopK_smallest", {Real({5, 2}), Ints({3})}, {{"axis", 0}, {"largest", 0}})
          .Outputs(2, {0}),
      Case("Compress", {Real({2, 3}), Flags({6})}).DataDependent(),
      Case("Compress_axis", {Real({3, 4}), Flags({4})}, {{"axis", 1}}).DataDependent(),
      Case("Unique", {Real({5})}).Outputs(1, {0}).DataDependent(),
      Case("Unique_unsorted", {Real({2, 3})}, {{"sorted", 0}}).DataDependent(),
  };
}

}  // namespace onward
