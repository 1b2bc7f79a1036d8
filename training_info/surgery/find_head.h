// SPDX-License-Identifier: Apache-2.0
// The last layer that computes the scores of classes, and what stands between it and an output.
#ifndef ONWARD_TRAINING_INFO_SURGERY_FIND_HEAD_H_
#define ONWARD_TRAINING_INFO_SURGERY_FIND_HEAD_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"

namespace onward {

// An input of a node that holds numbers for each class.
struct HeadParameter {
  int node = -1;  // of graph.nodes
  int input = 0;
  Tensor value;  // of one that is computed only type and shape
  int axis = 0;  // that counts classes; -1: it is one number for all
};

struct Head {
  std::vector<HeadParameter> parameters;  // the weight, and the bias if there is one
  // Reshapes behind it (of graph.nodes) whose target ends with the number of classes.
  std::vector<int> reshapes;
  // What it computes is quantized to a range that was the old one's, and dequantized again.
  struct Quantized {
    int dequantize, quantize;  // of graph.nodes
  };
  std::vector<Quantized> quantized;
};

// The way from an output back to a MatMul, Gemm or Conv leads through what computes each class by
// itself or all of an example together. An error names the node where it ends.
absl::StatusOr<Head> FindHead(const Graph& graph, const std::string& output);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_SURGERY_FIND_HEAD_H_
