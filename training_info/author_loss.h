// SPDX-License-Identifier: Apache-2.0
// The loss that MakeTrainable writes: a weighted sum of losses, each at its own outputs.
#ifndef ONWARD_TRAINING_INFO_AUTHOR_LOSS_H_
#define ONWARD_TRAINING_INFO_AUTHOR_LOSS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/rename.h"
#include "environment/environment.h"
#include "training_info/loss_parts.h"
#include "training_info/recipe.h"

namespace onward {

// A loss whose outputs are known and whose file is read.
struct ResolvedLoss {
  LossTerm term;
  std::optional<Graph> graph = std::nullopt;  // of a file
};

// `output` is the one for losses that name none; "": the first that fit.
absl::StatusOr<std::vector<ResolvedLoss>> ResolveLosses(const std::vector<LossTerm>& terms,
                                                        const std::string& output,
                                                        const Graph& graph);
// Every output that some loss compares, the main one first.
std::vector<std::string> ComparedOutputs(const std::vector<ResolvedLoss>& losses);

struct WrittenLoss {
  LossParts losses;                 // where there is one, its value is the sum
  std::vector<std::string> labels;  // new inputs
};
// Adds the losses to `work`. `trained` gives the value that stands for an output of the model
// in training, where it is another one. Labels are named `labels` in turn, after these
// label_OUTPUT; losses of the same outputs share one that is of the same type.
absl::StatusOr<WrittenLoss> WriteLosses(const std::vector<ResolvedLoss>& losses,
                                        const Renaming& trained,
                                        const std::vector<std::string>& labels,
                                        const Environment& environment, Graph* work);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_AUTHOR_LOSS_H_
