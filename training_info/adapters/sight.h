// SPDX-License-Identifier: Apache-2.0
// What a node can see: the values of its graph, then those of the graphs around it, and which of
// them are made of constants alone.
#ifndef ONWARD_TRAINING_INFO_ADAPTERS_SIGHT_H_
#define ONWARD_TRAINING_INFO_ADAPTERS_SIGHT_H_

#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/graph/graph.h"

namespace onward {

class Sight {
 public:
  // Keeps references. Nodes of the graph are in order.
  explicit Sight(const Graph& graph, const Sight* outer = nullptr);

  bool IsConstant(const std::string& value) const;
  const Node* Producer(const std::string& value) const;
  // An initializer, or the value of a Constant node.
  std::optional<Tensor> Stored(const std::string& value) const;
  // Type and shape, if all of it is known.
  struct Known {
    DType dtype = DType::kUndefined;
    Shape shape;
  };
  std::optional<Known> TypeOf(const std::string& value) const;

  // The nodes that a constant is computed by, in order, and what is stored of it as initializers.
  Graph ConstantGraph(const std::string& value) const;

 private:
  const Sight& root() const { return outer_ == nullptr ? *this : outer_->root(); }

  const Graph& graph_;
  const Sight* const outer_;
  absl::flat_hash_map<std::string, const Node*> producer_;
  absl::flat_hash_set<std::string> constants_;
};

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_ADAPTERS_SIGHT_H_
