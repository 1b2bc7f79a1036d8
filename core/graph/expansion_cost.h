// SPDX-License-Identifier: Apache-2.0
// What the body of a function costs once its calls are replaced by bodies, as a
// formula: a body may copy what it is handed (an attribute of its call, which can be a
// graph that holds such copies itself), so the cost depends on the call. Copies only
// ever add up, hence the formula is linear in what is handed on, and a chain of
// functions is a chain of linear formulas: no depth of it takes longer to reckon.
#ifndef ONWARD_CORE_GRAPH_EXPANSION_COST_H_
#define ONWARD_CORE_GRAPH_EXPANSION_COST_H_

#include <cstdint>
#include <map>
#include <string>

namespace onward {

class ExpansionCost {
 public:
  static ExpansionCost OfNodes(int64_t nodes);
  // A copy of the call's attribute of that name.
  static ExpansionCost OfReference(const std::string& attribute);

  void Add(const ExpansionCost& other);
  // The same inside one graph more.
  ExpansionCost Nested() const;
  // That of a call whose attributes cost so much each; it refers to what they refer to.
  ExpansionCost Called(const std::map<std::string, ExpansionCost>& arguments) const;

  // Without what references would add.
  int64_t nodes() const;
  int64_t nesting() const { return nesting_; }

 private:
  struct Reference {
    int64_t copies = 0;
    int64_t nesting = 0;  // graphs around the innermost of the copies
  };

  int64_t own_ = 0;
  int64_t copied_ = 0;  // because they were handed on
  int64_t nesting_ = 0;
  std::map<std::string, Reference> references_;
};

}  // namespace onward

#endif  // ONWARD_CORE_GRAPH_EXPANSION_COST_H_
