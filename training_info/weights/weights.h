// SPDX-License-Identifier: Apache-2.0
// Which constants of an inference graph are weights. Files do not say it, so it is decided by
// evidence: what the exporter wrote beside a value, then how the value is used and what it holds.
#ifndef ONWARD_TRAINING_INFO_WEIGHTS_WEIGHTS_H_
#define ONWARD_TRAINING_INFO_WEIGHTS_WEIGHTS_H_

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace onward {

// Metadata of an initializer that was split off another one with equal numbers: its name. The
// other has this entry too, naming itself, because an exporter's word on a merged tensor is about
// one of them only.
inline constexpr char kCopyOfKey[] = "ai.onward.copy_of";

struct WeightDecision {
  std::string name;  // of an initializer, or of the value of a Constant node
  bool trains = false;
  std::string reason;          // "weight of Conv", "a single number in Mul", ...
  bool in_constant = false;    // a Constant node holds it
  bool may_train = false;      // split off the tensors it was merged with, it might
  bool layer_operand = false;  // in the place of a weight at a layer
  bool is_statistic = false;   // a running mean or variance: nodes update it, no gradient does
};

// One decision for each float constant that `outputs` depend on, by name. Types of values
// help (InferTypes), but are not needed.
std::vector<WeightDecision> DecideWeights(const Graph& graph,
                                          const std::vector<std::string>& outputs);

// Whether the exporter calls the value a parameter.
bool IsParameter(const Graph& graph, const std::string& name);

// The running statistics of BatchNormalization among the initializers and Constant nodes.
std::vector<std::string> RunningStatistics(const Graph& graph);

// --- how a constant is used (uses.cc)

enum class Evidence {
  kNever,          // a number of the model's design: scales, masks, start states
  kIfNothingElse,  // nothing speaks for a weight, nothing forbids it
  kLikely,         // a weight, unless the exporter wrote it as a literal
  kWeight,
};
struct Use {
  Evidence evidence = Evidence::kNever;
  std::string reason;
  bool layer_operand = false;  // its place at the node is one of a weight, whatever it holds
};
// The strongest use of every constant and of every value computed from constants alone.
absl::flat_hash_map<std::string, Use> UsesOfConstants(const Graph& graph);

// --- what a constant holds (contents.cc)

// One number everywhere.
bool IsUniform(const Tensor& t);
// 0 and 1, or 0 and a large negative number, or that number alone, and nothing else.
bool IsMask(const Tensor& t);
// Sines and cosines of positions: columns in pairs whose squares add up to 1.
bool IsSinusoid(const Tensor& t);
// Equal steps along an axis, everywhere: anchors, grids, distances.
bool IsGrid(const Tensor& t);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_WEIGHTS_WEIGHTS_H_
