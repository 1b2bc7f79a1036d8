// SPDX-License-Identifier: Apache-2.0
// What a training is made of, as people write it: losses with weights at outputs, files of
// somebody's own, groups of parameters.
#ifndef ONWARD_TRAINING_INFO_RECIPE_H_
#define ONWARD_TRAINING_INFO_RECIPE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "losses/loss.h"
#include "optimizers/optimizer.h"

namespace onward {

// One part of the loss: 0.1*l1@mask, gaussian_nll@mean,variance, 0.5*my_loss.onnx.
struct LossTerm {
  double weight = 1;
  LossSpec spec = {};                     // by name, or
  std::string file = "";                  // an ONNX file that computes it
  std::vector<std::string> outputs = {};  // of the model; none: the first that fit
};
absl::StatusOr<LossTerm> ParseLossTerm(absl::string_view text);
// What ParseLossTerm reads back.
std::string LossTermText(const LossTerm& term);

// An optimizer by name, or an ONNX file with values for some of its inputs and for lr.
struct OptimizerChoice {
  OptimizerSpec spec = {"adamw", {}};
  std::string file = "";
  std::map<std::string, double> numbers = {};

  bool is_file() const { return !file.empty(); }
  // The base rate.
  double lr() const;
};
absl::StatusOr<OptimizerChoice> ParseOptimizerChoice(absl::string_view text);
// What ParseOptimizerChoice reads back.
std::string OptimizerChoiceText(const OptimizerChoice& choice);
// With all its numbers, those that were not given too: "adamw: lr 0.001, beta1 0.9, ...".
std::string OptimizerWords(const OptimizerChoice& choice);

// Weights that learn by options of their own: 'head.*:lr=10x,weight_decay=0'.
struct ParameterGroup {
  std::string pattern;
  std::map<std::string, std::string> options;  // of the optimizer; lr may be a factor: 10x
};
absl::StatusOr<ParameterGroup> ParseGroup(absl::string_view text);

// An optimizer with the options of a group in the place of its own.
absl::StatusOr<OptimizerChoice> Specialized(const OptimizerChoice& base,
                                            const std::map<std::string, std::string>& options);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_RECIPE_H_
