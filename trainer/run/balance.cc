// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/balance.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "data/split.h"
#include "trainer/run/class_labels.h"
#include "trainer/run/judging.h"

namespace onward {
namespace {

// What of a loss holds the weights; null where nothing does.
const char* WeightOption(const LossSpec& loss) {
  if (loss.name == "cross_entropy" || loss.name == "nll") return "weight";
  return loss.name == "bce" ? "pos_weight" : nullptr;
}

absl::Status CheckWeighable(const AuthorOptions& options, const LossSpec& loss) {
  if (options.losses.size() > 1) {
    return absl::InvalidArgumentError(
        "--balance weights is for one loss, and several are given; write weight= into the one "
        "that is meant, or take --balance sample");
  }
  const char* option = WeightOption(loss);
  if (option == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("--balance weights: loss '", loss.name,
                                                   "' has no weights of classes; take --balance "
                                                   "sample"));
  }
  if (!loss.options.contains(option)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--balance weights and ", loss.name, ":", option,
                                                 "= both weigh the classes: choose one"));
}

}  // namespace

absl::Status WeighClasses(const Graph& inference, const std::vector<std::string>& classes,
                          std::shared_ptr<const Dataset> data, AuthorOptions* options) {
  const bool named = !options->losses.empty();
  LossSpec& loss = named ? options->losses[0].spec : options->loss;
  ONWARD_RETURN_IF_ERROR(CheckWeighable(*options, loss));
  std::string output = options->output.empty() ? DefaultOutput(inference) : options->output;
  if (named && !options->losses[0].outputs.empty()) output = options->losses[0].outputs[0];
  const bool new_head = options->head_classes > 0;
  const int64_t outputs =
      new_head ? options->head_classes : OutputClasses(inference.TypeOf(output), ScoringOf(loss));
  ModelClasses model;
  if (!new_head) model.names = classes;
  model.output = output;
  model.outputs = outputs;
  model.takes_names = true;
  ONWARD_ASSIGN_OR_RETURN(const AlignedData aligned, AlignClasses(std::move(data), model));
  ONWARD_ASSIGN_OR_RETURN(std::vector<double> weights, ClassWeights(*aligned.data));
  if (loss.name == "bce") {
    if (weights.size() != 2 || weights[0] == 0 || weights[1] == 0) {
      return absl::InvalidArgumentError("--balance weights: bce needs examples of both classes");
    }
    weights = {weights[1] / weights[0]};
  } else if (outputs > 0) {
    weights.resize(static_cast<size_t>(outputs), 0);
  }
  loss.options[WeightOption(loss)] = absl::StrJoin(weights, "/");
  return absl::OkStatus();
}

}  // namespace onward
