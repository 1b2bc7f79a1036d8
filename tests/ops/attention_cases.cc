// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "tests/ops/cases.h"

namespace onward {

namespace {

std::vector<OpCase> StandardCases() {
  const Arg small = Real({1, 2, 2, 2}), past = Real({1, 2, 1, 2});
  return {
      Case("Attention", {Real({1, 2, 3, 2}), Real({1, 2, 3, 2}), Real({1, 2, 3, 2})}),
      Case("Attention_causal_mask",
           {Real({1, 2, 3, 2}), Real({1, 2, 4, 2}), Real({1, 2, 4, 3}), Real({3, 4})},
           {{"is_causal", 1}, {"scale", 0.3}}),
      Case("Attention_causal", {small, small, small}, {{"is_causal", 1}}),
      Case("Attention_mask_per_head", {small, small, small, Real({1, 2, 2, 2})}),
      Case("Attention_mask_stack", {small, small, small, Real({2, 1, 2})}),
      Case("Attention_grouped_flags",
           {Real({1, 4, 2, 2}), Real({1, 2, 3, 2}), Real({1, 2, 3, 2}), Flags({2, 3})}),
      Case("Attention_grouped_mask",
           {Real({1, 4, 2, 2}), Real({1, 2, 3, 2}), Real({1, 2, 3, 2}), Real({1, 4, 2, 3})}),
      Case("Attention_joined_heads", {Real({2, 2, 4}), Real({2, 3, 4}), Real({2, 3, 6})},
           {{"kv_num_heads", 2}, {"q_num_heads", 2}}),
      Case("Attention_joined_grouped", {Real({1, 2, 4}), Real({1, 3, 2}), Real({1, 3, 3})},
           {{"kv_num_heads", 1}, {"q_num_heads", 2}}),
      Case("Attention_softcap", {small, small, small}, {{"softcap", 1.5f}}),
      Case("Attention_window", {Real({1, 1, 4, 2}), Real({1, 1, 4, 2}), Real({1, 1, 4, 2})},
           {{"left_window_size", 1}, {"right_window_size", 1}}),
      Case("Attention_past", {small, small, small, Omitted(), past, past}).Outputs(3, {0, 1, 2}),
      Case("Attention_past_causal", {small, small, small, Omitted(), past, past},
           {{"is_causal", 1}})
          .Outputs(3, {0, 1, 2}),
      Case("Attention_past_mask", {small, small, small, Real({2, 3}), past, past},
           {{"softcap", 2.0f}})
          .Outputs(3, {0, 1, 2}),
      Case("Attention_lengths", {Real({2, 1, 2, 2}), Real({2, 1, 3, 2}), Real({2, 1, 3, 2}),
                                 Omitted(), Omitted(), Omitted(), Fed({2}, {2, 3})}),
  };
}

// The scores as an output: products, capped, with the mask, after the softmax.
std::vector<OpCase> ScoreCases() {
  std::vector<OpCase> cases;
  for (const int64_t mode : {0, 1, 2, 3}) {
    const Arg part = Real({1, 1, 2, 2}), past = Real({1, 1, 1, 2});
    cases.push_back(Case("Attention_scores" + std::to_string(mode),
                         {part, part, part, Real({2, 3}), past, past},
                         {{"qk_matmul_output_mode", mode}, {"softcap", 2.0f}})
                        .Outputs(4, {0, 3}));
  }
  return cases;
}

std::vector<OpCase> ScaledDotProductCases() {
  const auto own = [](const char* name, std::vector<Arg> args, Attributes attributes = {}) {
    return Case(name, std::move(args), std::move(attributes)).Own();
  };
  return {
      own("ScaledDotProductAttention", {Real({2, 1, 3, 2}), Real({2, 1, 3, 2}), Real({2, 1, 3, 2})},
          {{"scale", 0.5}})
          .Unknown({0, 1, 2}),
      own("ScaledDotProductAttention_cross",
          {Real({1, 2, 2, 3}), Real({1, 2, 4, 3}), Real({1, 2, 4, 1})}, {{"scale", -0.7}}),
      own("ScaledDotProductAttention_mask",
          {Real({2, 2, 2, 3}), Real({2, 2, 3, 3}), Real({2, 2, 3, 2}), Real({2, 1, 1, 3})},
          {{"scale", 0.25}})
          .By({0, 1, 2})
          .Unknown({0, 1, 2, 3}),
      own("ScaledDotProductAttention_mask_differentiated",
          {Real({2, 2, 2, 2}), Real({2, 2, 3, 2}), Real({2, 2, 3, 2}), Real({2, 2, 3})})
          .Unknown({0, 1, 2}),
      own("ScaledDotProductAttention_stack",
          {Real({2, 3, 2}), Real({2, 2, 2}), Real({2, 2, 3}), Real({3, 1})}, {{"scale", 2.0}}),
      own("ScaledDotProductAttention_shared_keys",
          {Real({2, 2, 2, 2}), Real({1, 2, 3, 2}), Real({2, 1, 3, 2})}, {{"scale", 0.5}}),
  };
}

}  // namespace

std::vector<OpCase> AttentionCases() {
  std::vector<OpCase> cases = ScaledDotProductCases();
  for (auto* more : {StandardCases, ScoreCases}) {
    for (OpCase& c : more()) cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace onward
