// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/cases.h"

namespace onward {

std::vector<OpCase> AttentionCases() {
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
      Case("Attention", {Real({1, 2, 3, 2}), Real({1, 2, 3, 2}), Real({1, 2, 3, 2})}),
      Case("Attention_causal_mask",
           {Real({1, 2, 3, 2}), Real({1, 2, 4, 2}), Real({1, 2, 4, 3}), Real({3, 4})},
           {{"is_causal", 1}, {"scale", 0.3}}),
      Case("Attention_grouped_flags",
           {Real({1, 4, 2, 2}), Real({1, 2, 3, 2}), Real({1, 2, 3, 2}), Flags({2, 3})}),
      Case("Attention_joined_heads", {Real({2, 2, 4}), Real({2, 3, 4}), Real({2, 3, 6})},
           {{"kv_num_heads", 2}, {"q_num_heads", 2}}),
  };
}

}  // namespace onward
