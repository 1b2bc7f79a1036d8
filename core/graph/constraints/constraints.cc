// SPDX-License-Identifier: Apache-2.0
#include "core/graph/constraints/constraints.h"

#include "core/graph/constraints/rules.h"

namespace onward {
namespace {

const constraints::Table& Rows() {
  static const constraints::Table* rows = [] {
    auto* table = new constraints::Table;
    constraints::AddWindowRows(*table);
    constraints::AddMovementRows(*table);
    constraints::AddNormRows(*table);
    constraints::AddSequenceRows(*table);
    constraints::AddArithmeticRows(*table);
    constraints::AddSignalRows(*table);
    constraints::AddLearningRows(*table);
    return table;
  }();
  return *rows;
}

}  // namespace

std::vector<std::string> BrokenConstraints(const Node& node, absl::Span<const InputFact> inputs,
                                           int version) {
  const auto row = node.domain.empty() ? Rows().find(node.op_type)
                                       : Rows().find(node.domain + "." + node.op_type);
  if (row == Rows().end()) return {};
  constraints::Subject subject(node, inputs, version);
  for (const constraints::Rule& rule : row->second) rule(subject);
  return subject.TakeProblems();
}

bool HasConstraints(const std::string& op) { return Rows().contains(op); }

}  // namespace onward
