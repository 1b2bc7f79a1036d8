// SPDX-License-Identifier: Apache-2.0
// What a weight is to its layer, as far as that decides how it begins.
#ifndef ONWARD_TRAINING_INFO_INITIALIZERS_LAYER_H_
#define ONWARD_TRAINING_INFO_INITIALIZERS_LAYER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/graph/graph.h"
#include "training_info/initializers/initializer.h"

namespace onward {

enum class WeightRole {
  kMatrix,          // of MatMul, Gemm, Conv and their kin
  kBias,            // of those
  kRecurrentInput,  // W of LSTM, GRU, RNN
  kRecurrentState,  // R of them
  kRecurrentBias,   // B of them, or its first half
  kEmbedding,       // a table of Gather
  kScale,           // of a normalization, and what multiplies
  kShift,           // of a normalization, and what else is added
  kSlope,           // of PRelu
  kToken,           // a learned value beside the results of layers
  kAdapterDown,     // A of an adapter (adapters/adapter.h)
  kAdapterUp,       // B of it
};

struct WeightLayer {
  WeightRole role = WeightRole::kShift;
  WeightMatrix matrix;
  std::string op = "";      // of a recurrent layer
  int64_t hidden_size = 1;  // of it
};

class LayerFinder {
 public:
  // Keeps a reference to the graph.
  explicit LayerFinder(const Graph& graph);

  // Of an initializer.
  WeightLayer Find(const std::string& weight) const;

 private:
  // Where a weight is computed with, behind changes of its form.
  struct Use {
    const Node* node = nullptr;
    size_t input = 0;
    std::string value;    // what the node reads
    bool turned = false;  // transposed on the way
    bool whole = true;    // no part of it is left out or repeated
  };
  Use FindUse(std::string value) const;
  const Node* Producer(const std::string& value) const;
  Shape ShapeOf(const std::string& value) const;

  WeightRole RoleOf(const Use& use, const Shape& shape) const;
  void SetMatrix(const Use& use, WeightLayer* layer) const;
  // Of the product that the bias is added to; 0 if it is added to none.
  int64_t FanInOfBias(const Use& use) const;

  const Graph& graph_;
  const std::vector<Node> nodes_;
  absl::flat_hash_map<std::string, std::pair<const Node*, size_t>> first_reader_;
  absl::flat_hash_map<std::string, const Node*> producer_;
};

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_INITIALIZERS_LAYER_H_
