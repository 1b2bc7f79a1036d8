// SPDX-License-Identifier: Apache-2.0
// What a value was in each iteration of a Loop: handed out by the node, found again by number.
// Values of one shape are stacked, those of changing shapes stand in a sequence. There are no
// sequences of sequences: the elements of all iterations stand in one, beside where those of each
// iteration begin and how many they are.
#ifndef ONWARD_AUTOGRAD_RULES_KEPT_H_
#define ONWARD_AUTOGRAD_RULES_KEPT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "autograd/rules/loop.h"

namespace onward {

// Whether all iterations see one shape, as far as types tell.
bool HasOneShape(const ValueType& type);

struct Kept {
  enum class As { kStacked, kListed, kJoined };
  As as = As::kStacked;
  ValueType type;            // in an iteration
  std::string all;           // outputs of the node: the stack, or the sequence
  std::string first, count;  // of joined ones: int64, one for each iteration

  // These, with their types.
  std::vector<NamedType> Outputs() const;
  // The first of them that tells how many iterations there were by its length.
  const std::string& Counted() const { return as == As::kJoined ? count : all; }
};

// Makes the loop keep a value of its body. What the node reads from then on stands in `before`.
absl::StatusOr<Kept> Keep(const std::string& value, const ValueType& type, GraphBuilder& b,
                          Repeated* loop, std::vector<Node>* before);

// Nodes, for another body, that give `name` what was kept of iteration `i` (a scalar).
std::vector<Node> Recall(const Kept& kept, const std::string& i, const std::string& name,
                         GraphBuilder& b);

}  // namespace onward

#endif  // ONWARD_AUTOGRAD_RULES_KEPT_H_
