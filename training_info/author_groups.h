// SPDX-License-Identifier: Apache-2.0
// Which optimizer, with which options, each trained weight has.
#ifndef ONWARD_TRAINING_INFO_AUTHOR_GROUPS_H_
#define ONWARD_TRAINING_INFO_AUTHOR_GROUPS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "training_info/author.h"
#include "training_info/file_optimizer.h"

namespace onward {

// Weights that one optimizer with the same options updates.
struct WeightGroup {
  int group = -1;  // of the options; -1: none
  bool decays = true;
  OptimizerChoice optimizer;
  std::vector<size_t> members;  // indices of the trained weights
};

// `base` is the optimizer without groups, `file` its graph where it is a file.
absl::StatusOr<std::vector<WeightGroup>> GroupWeights(const AuthorOptions& options,
                                                      const OptimizerChoice& base,
                                                      const std::optional<FileOptimizer>& file,
                                                      const WeightChoice& weights,
                                                      const Graph& graph,
                                                      const std::vector<std::string>& trained);

// What the group has of its own, as --group takes it; "" where that is nothing. The rate is a
// factor of the base rate, which may be changed later.
std::string OwnOptions(const AuthorOptions& options, const OptimizerChoice& base,
                       const WeightGroup& group);

// Which weights belong to normalisations, by the operators that read them.
bool IsNormalizationWeight(const Graph& graph, const std::string& weight);

// Whether a unit of the layer is a column of the weight: MatMul and Gemm have [in, out].
bool UnitsLast(const Graph& graph, const std::string& weight);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_AUTHOR_GROUPS_H_
