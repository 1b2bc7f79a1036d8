// SPDX-License-Identifier: Apache-2.0
// What the forms of attention share.
#ifndef ONWARD_CONTRIB_MICROSOFT_ATTENTION_H_
#define ONWARD_CONTRIB_MICROSOFT_ATTENTION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "contrib/microsoft/families.h"

namespace onward::microsoft {

inline constexpr int64_t kMostHeads = int64_t{1} << 20;

// q, k and v of [batch, heads, length, size].
struct Heads {
  Expr q, k, v;
  Expr past = {};  // how many keys stand before the first query, int64; undefined: none
};

// What is added to scale * q k^T; undefined for nothing.
struct Bias {
  Expr masked, given;
  double softcap = 0;  // 0: none
};

// [batch, length, heads * size] to heads and back.
Expr SplitHeads(const Call& call, const Expr& x, int64_t heads);
Expr JoinHeads(const Expr& x);

// Hides the keys behind each query, and with a window those further before it.
Expr CausalBias(const Heads& heads, int64_t window);
// Hides the keys behind the last one of each row, whose number `last` holds.
Expr PaddingBias(const Expr& last, const Heads& heads);
// Hides what a mask does: rank 1 ends of rows, or ends and starts; rank 2 and 3 flags.
Expr MaskBias(const Call& call, const Expr& mask, const Heads& heads);
// A mask, a bias that is given, and the attribute `unidirectional`.
Bias BiasesOf(const Call& call, const Heads& heads, const Expr& mask, const Expr& given);

// Keys and values of before in front of these.
Heads WithPast(const Call& call, Heads heads, const Expr& past_key, const Expr& past_value);

// softmax(scale * q k^T + bias) v, its scale from the attribute or the size of the heads.
Expr Attend(const Call& call, const Heads& heads, const Bias& bias, Expr* probabilities = nullptr);

}  // namespace onward::microsoft

#endif  // ONWARD_CONTRIB_MICROSOFT_ATTENTION_H_
