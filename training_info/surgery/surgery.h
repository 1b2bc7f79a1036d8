// SPDX-License-Identifier: Apache-2.0
// The graph surgery that MakeTrainable is made of.
#ifndef ONWARD_TRAINING_INFO_SURGERY_SURGERY_H_
#define ONWARD_TRAINING_INFO_SURGERY_SURGERY_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/operator_set.h"
#include "environment/environment.h"
#include "training_info/initializers/initializer.h"
#include "training_info/spec.h"

namespace onward {

// --- training-mode forward (training_forward.cc)

// What changes in training. Frozen statistics are those of inference, and stay.
struct TrainingModes {
  bool freeze_statistics = false;
};

// Whether a node on the way to `outputs` behaves differently in training.
bool NeedsTrainingForward(const Graph& graph, const std::vector<std::string>& outputs,
                          const TrainingModes& modes = {});

struct TrainingForward {
  std::vector<Node> nodes;           // a copy of the nodes that `outputs` need
  std::vector<std::string> outputs;  // their names in the copy
  std::vector<Binding> statistics;   // running statistics to write back
};
// BatchNormalization in training mode, Dropout switched on; values that no such
// node influences are read from the inference graph instead of copied.
TrainingForward CopyForward(const Graph& graph, const std::vector<std::string>& outputs,
                            const TrainingModes& modes = {});

// --- constants (lift_constants.cc)

// Weights in Constant nodes cannot be bound until they are initializers. Makes them so, those
// that have these names; whether there were any.
bool LiftConstants(Graph* graph, const std::set<std::string>& names);

// Exporters also put weights into the bodies of If, Loop and Scan, where nothing can bind
// them. Moves float tensors of more than one element, initializers and Constant nodes, to
// Constant nodes of the graph itself; names that stand twice become new ones. Whether there
// were any.
bool LiftFromBodies(Graph* graph);

// --- training mode (inference_mode.cc)

struct ModeChange {
  int normalizations = 0, dropouts = 0;
  bool any() const { return normalizations + dropouts > 0; }
  std::string ToString() const;  // "2 BatchNormalization, 1 Dropout"
};
// Files are also exported in training mode. Makes BatchNormalization use its running statistics
// and Dropout hand on what it gets, in bodies too. A Dropout whose mode is fed
// stays. A statistic that is read further on is then the one that went in.
ModeChange SetInferenceMode(Graph* graph);

// --- shared tensors (unshare.cc)

// Gives every reader of a uniformly filled initializer among `names` a copy of
// its own (kCopyOfKey in their metadata); returns the names that were shared.
// Weights that hold anything but one repeated number are taken to be tied on purpose.
std::vector<std::string> UnshareInitializers(Graph* graph, const std::vector<std::string>& names);

// --- tied tensors (tie.cc)

struct Tie {
  std::string copy, kept;  // `copy` was an initializer, and is computed from `kept` now
};
// Exporters fold the transposition of a tied weight (an embedding that is the output layer,
// too) into a second initializer. Makes the one among `names` that is another one transposed,
// number for number, a Transpose of it again, under its name.
std::vector<Tie> TieTransposedCopies(Graph* graph, const std::vector<std::string>& names);

// --- repeated tokens (collapse.cc)

// Where a constant among `names` repeats itself along an axis as long as the fixed batch, makes
// one part (`kept`) the weight, repeated under the old name (`copy`).
std::vector<Tie> CollapseRepeatedRows(Graph* graph, const std::vector<std::string>& names);

// --- biases of recurrent layers (recurrent_bias.cc)

// Where the second half of a bias among `names` is zero in a layer that has one bias only,
// makes the first half the weight (`kept`), padded to the whole under its name (`copy`).
std::vector<Tie> SplitPaddedBiases(Graph* graph, const std::vector<std::string>& names);

// --- weights (initialization.cc, draw_weights.cc)

// An initialization graph that draws the named weights afresh: matrices as `spec` says, what else
// a layer has in the usual way (initializers/layer.h), and sets the named states to their present
// values.
absl::Status AddInitialization(const Graph& graph, const std::vector<std::string>& weights,
                               const std::vector<std::pair<std::string, Tensor>>& states,
                               const InitSpec& spec, const OperatorSet& operators,
                               TrainingEntry* entry);

// Gives the named initializers what such a graph draws with this seed.
absl::Status DrawWeights(const std::vector<std::string>& names, const InitSpec& spec, uint64_t seed,
                         const Environment& environment, Graph* graph);

// --- classifier head (head.cc)

// Old files list initializers among the inputs.
void DropInitializersFromInputs(Graph* graph);

// Gives the last MatMul, Gemm or Conv before `output` `classes` outputs, with weights of zeros;
// returns the names of the initializers replaced.
absl::StatusOr<std::vector<std::string>> ReplaceHead(Graph* graph, const std::string& output,
                                                     int64_t classes);

// --- models of ai.onnx.ml (learned_models.cc)

// Outputs that a ZipMap makes, dictionaries from class to score, become the scores; their names.
std::vector<std::string> DropZipMaps(Graph* graph);
// LinearRegressor and LinearClassifier as products and sums, whose weights are constants; which.
absl::StatusOr<std::vector<std::string>> OpenLinearModels(const OperatorSet& operators,
                                                          Graph* graph);

// --- batch size (free_batch.cc)

// Makes the first axis of every fed input variable ("batch"), where the graph
// allows it: leading sizes in Reshape constants become "copy".
absl::Status FreeBatch(const OperatorSet& operators, Graph* graph);
// The fixed batch size of the inputs; 0 if it is variable or inputs disagree.
int64_t FixedBatch(const Graph& graph);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_SURGERY_SURGERY_H_
