// SPDX-License-Identifier: Apache-2.0
// What exporters compute with sizes (Shape, Gather, Concat, Reshape, ...), as far as it can be
// known before anything runs: elements that are numbers, or dimensions that have a name.
#ifndef ONWARD_CORE_GRAPH_SHAPE_DATA_H_
#define ONWARD_CORE_GRAPH_SHAPE_DATA_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "core/graph/graph.h"
#include "core/graph/operator_set.h"

namespace onward {

// One element of an integer tensor. Neither number nor symbol: unknown.
struct SizeElement {
  std::optional<int64_t> number;
  std::string symbol = {};  // a dimension, so never negative
  bool known() const { return number.has_value() || !symbol.empty(); }
  friend bool operator==(const SizeElement&, const SizeElement&) = default;
};
using SizeElements = std::vector<SizeElement>;  // of a scalar or a vector

class ShapeData {
 public:
  // Completes the types that were inferred for the outputs of a node, and remembers the
  // elements of the first one. Nodes come in order, each once.
  void Visit(const Node& node, absl::Span<const InputFact> inputs, std::vector<ValueType>* types);
  // The value as a tensor, where all its elements are numbers.
  std::optional<Tensor> ConstantOf(const std::string& value) const;

 private:
  struct Known {
    SizeElements elements;
    ValueType type;
  };
  std::optional<SizeElements> Of(const Node& node, absl::Span<const InputFact> inputs,
                                 size_t i) const;
  std::optional<SizeElements> Computed(const Node& node, absl::Span<const InputFact> inputs) const;
  absl::flat_hash_map<std::string, Known> known_;
};

}  // namespace onward

#endif  // ONWARD_CORE_GRAPH_SHAPE_DATA_H_
