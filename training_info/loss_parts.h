// SPDX-License-Identifier: Apache-2.0
// The losses of a trainable file, one by one: what its metadata say of them, and the graph that
// computes them where the model is not trained.
#ifndef ONWARD_TRAINING_INFO_LOSS_PARTS_H_
#define ONWARD_TRAINING_INFO_LOSS_PARTS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/onnx_io/model.h"
#include "environment/environment.h"
#include "training_info/recipe.h"
#include "training_info/spec.h"

namespace onward {

struct LossPart {
  LossTerm term;                           // its outputs are named
  std::string value = "";                  // the scalar in a graph, before its weight
  std::vector<std::string> compared = {};  // values of the graph, one for each output of the term
  std::vector<std::string> labels = {};    // inputs of the graph
};

struct LossParts {
  std::string sum;
  std::vector<LossPart> parts;
};

// Writes them into the metadata: the keys of step.h for the first and, where these do not tell
// all, onward.loss_1, onward.loss_1.value, .output_1, .training_output_1, .label_1 and so on.
void StoreLosses(const LossParts& losses, Model* model);
// What is compared is what training compares. Null where the file does not say.
std::optional<LossParts> StoredLosses(const Model& model);

// Adds losses at the outputs of `graph`. Labels are named `label`, then label_OUTPUT.
absl::StatusOr<LossParts> AddLosses(const std::vector<LossTerm>& terms, const std::string& output,
                                    const std::string& label, const Environment& environment,
                                    Graph* graph);

// The inference graph with the losses of training_info[0], at the outputs of inference in the
// place of those of training; `losses`, as stored, are changed to say so.
absl::StatusOr<Graph> LossGraph(const TrainingSpec& spec, LossParts* losses);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_LOSS_PARTS_H_
