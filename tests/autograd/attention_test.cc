// SPDX-License-Identifier: Apache-2.0
// Attention in which some rows may look at nothing: their result is zero, and so is what they
// add to gradients.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/graph_case.h"

namespace onward::attention_test {

constexpr char kMasked[] = R"(<ir_version: 10, opset_import: ["" : 24]>
g (double[1, 2, 3, 4] q, double[1, 2, 3, 4] k, double[1, 2, 3, 2] v, bool[3, 3] mask) => (double[1, 2, 3, 2] y) {
  y = Attention (q, k, v, mask)
})";

// The mask of the file is drawn, its last row replaced.
constexpr char kInfinite[] = R"(<ir_version: 10, opset_import: ["" : 24]>
g (double[1, 1, 3, 4] q, double[1, 1, 3, 4] k, double[1, 1, 3, 2] v, double[2, 3] mask) => (double[1, 1, 3, 2] y, double[1, 1, 3, 3] p) {
  none = Constant <value = double[1, 3] {-inf, -inf, -inf}> ()
  whole = Concat <axis = 0> (mask, none)
  y, key, value, p = Attention <qk_matmul_output_mode = 3, scale = 0.3> (q, k, v, whole)
})";

// With three keys of which two count, the first of four queries looks at nothing.
constexpr char kPadded[] = R"(<ir_version: 10, opset_import: ["" : 24]>
g (double[1, 1, 4, 4] q, double[1, 1, 3, 4] k, double[1, 1, 3, 2] v, int64[1] count) => (double[1, 1, 4, 2] y) {
  y = Attention <is_causal = 1> (q, k, v, , , , count)
})";

// As exporters write it.
constexpr char kWritten[] =
    R"(g (double[2, 3] q, double[3, 4] k, double[4, 2] v, bool[2, 4] mask) => (double[2, 2] y) {
  s = MatMul (q, k)
  none = Constant <value = double {-inf}> ()
  masked = Where (mask, s, none)
  p = Softmax (masked)
  empty = IsNaN (p)
  zero = Constant <value = double {0}> ()
  safe = Where (empty, zero, p)
  y = MatMul (safe, v)
})";

std::vector<GraphCase> Cases() {
  return {
      {"MaskedRow",
       kMasked,
       {{"mask", Tensor::FromValues<bool>(
                     {3, 3}, {true, false, true, false, false, false, true, true, true})}}},
      {"MaskedEverywhere", kMasked, {{"mask", Tensor::Zeros(DType::kBool, {3, 3})}}},
      {"InfiniteRow", kInfinite},
      {"Written",
       kWritten,
       {{"mask",
         Tensor::FromValues<bool>({2, 4}, {true, false, true, true, false, false, false, false})}}},
      {"Padded", kPadded, {{"count", Tensor::FromValues<int64_t>({1}, {2})}}},
  };
}

class AttentionGradient : public testing::TestWithParam<GraphCase> {};

TEST_P(AttentionGradient, IsThatOfDifferences) { CheckGraphCase(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Autograd, AttentionGradient, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace onward::attention_test
