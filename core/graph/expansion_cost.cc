// SPDX-License-Identifier: Apache-2.0
#include "core/graph/expansion_cost.h"

#include <algorithm>

namespace onward {
namespace {

// Everything beyond it is too much; products of two fit.
constexpr int64_t kMost = int64_t{1} << 31;
// A graph that is handed on is copied, renamed and nested anew by every function on
// the way: that much dearer than a node of a body.
constexpr int64_t kCostOfCopy = 32;

int64_t Sum(int64_t a, int64_t b) { return std::min(a + b, kMost); }
int64_t Product(int64_t a, int64_t b) { return std::min(a * b, kMost); }

}  // namespace

ExpansionCost ExpansionCost::OfNodes(int64_t nodes) {
  ExpansionCost cost;
  cost.own_ = std::min(nodes, kMost);
  return cost;
}

ExpansionCost ExpansionCost::OfReference(const std::string& attribute) {
  ExpansionCost cost;
  cost.references_[attribute].copies = 1;
  return cost;
}

void ExpansionCost::Add(const ExpansionCost& other) {
  own_ = Sum(own_, other.own_);
  copied_ = Sum(copied_, other.copied_);
  nesting_ = std::max(nesting_, other.nesting_);
  for (const auto& [name, added] : other.references_) {
    Reference& mine = references_[name];
    mine.copies = Sum(mine.copies, added.copies);
    mine.nesting = std::max(mine.nesting, added.nesting);
  }
}

ExpansionCost ExpansionCost::Nested() const {
  ExpansionCost cost = *this;
  cost.nesting_ = Sum(nesting_, 1);
  for (auto& [name, reference] : cost.references_) reference.nesting = Sum(reference.nesting, 1);
  return cost;
}

ExpansionCost ExpansionCost::Called(const std::map<std::string, ExpansionCost>& arguments) const {
  ExpansionCost cost;
  cost.own_ = own_;
  cost.copied_ = copied_;
  cost.nesting_ = nesting_;
  for (const auto& [name, reference] : references_) {
    auto it = arguments.find(name);
    if (it == arguments.end()) continue;
    const ExpansionCost& argument = it->second;
    const int64_t each = Sum(argument.own_, argument.copied_);
    cost.copied_ = Sum(cost.copied_, Product(reference.copies, each));
    cost.nesting_ = std::max(cost.nesting_, Sum(reference.nesting, argument.nesting_));
    for (const auto& [outer, handed] : argument.references_) {
      Reference& through = cost.references_[outer];
      through.copies = Sum(through.copies, Product(reference.copies, handed.copies));
      through.nesting = std::max(through.nesting, Sum(reference.nesting, handed.nesting));
    }
  }
  return cost;
}

int64_t ExpansionCost::nodes() const { return Sum(own_, Product(copied_, kCostOfCopy)); }

}  // namespace onward
