// SPDX-License-Identifier: Apache-2.0
// Turning an inference model into one that carries its training.
#ifndef ONWARD_TRAINING_INFO_AUTHOR_H_
#define ONWARD_TRAINING_INFO_AUTHOR_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "autograd/report.h"
#include "core/onnx_io/model.h"
#include "environment/environment.h"
#include "losses/loss.h"
#include "optimizers/optimizer.h"
#include "optimizers/schedule.h"
#include "training_info/adapters/adapter.h"
#include "training_info/initializers/initializer.h"
#include "training_info/recipe.h"
#include "training_info/weights/choice.h"

namespace onward {

enum class GradientForm {
  kOperator,  // one Gradient node
  kExpanded,  // plain operators that any runtime executes
};

// In AuthorOptions::no_decay: the weights of normalisations.
inline constexpr char kNormPattern[] = "norm";

struct AuthorOptions {
  LossSpec loss{"cross_entropy", {}};
  std::vector<LossTerm> losses;  // in the place of `loss`: a weighted sum of several
  OptimizerSpec optimizer{"adamw", {}};
  // In the place of `optimizer`: an ONNX file, and values for lr and other inputs of it.
  std::string optimizer_file;
  std::map<std::string, double> optimizer_numbers;
  ScheduleSpec schedule;
  // Patterns over initializer names ('*', '?'); empty `train` means all weights
  // (DecideWeights). A name without '*' and '?' also takes what is no weight.
  std::vector<std::string> train, freeze;
  // The first group that means a weight takes it. Weights of no_decay have a weight_decay of
  // 0 in any group; "norm" means those of normalisations.
  std::vector<ParameterGroup> groups;
  std::vector<std::string> no_decay;
  // Low-rank adapters: they learn in the place of the weights that a pattern means, and nothing
  // else does but what `train` names and a new head. Statistics are frozen then.
  std::vector<LoraSpec> lora;
  bool freeze_statistics = false;  // of BatchNormalization: used, not learned
  int64_t accumulate = 1;          // calls of the step that one update is made of
  double ema = 0;                  // decay of the weights' moving averages; 0: none are kept
  // kFloat16 or kBFloat16: what products and convolutions compute in. Optimizers work on
  // float then, on master copies where the weights are of 16 bits.
  DType precision = DType::kUndefined;
  // In this order; 0: no such clipping.
  double clip_adaptive = 0, clip_value = 0, clip_norm = 0;
  int64_t head_classes = 0;  // replace the last classifier by one with so many classes; 0: keep it
  GradientForm gradient = GradientForm::kOperator;
  std::string label = "label";
  std::vector<std::string> more_labels;  // of further losses; else label_OUTPUT
  std::string output;                    // the output to train; empty: DefaultOutput
  bool free_batch = false;               // make a fixed batch size variable
  InitSpec init;                         // what initialization draws, and a new head
  uint64_t seed = 0;                     // of new weights
};

struct AuthorResult {
  Model model;
  std::vector<std::string> trained;       // initializers that learn
  std::vector<WeightDecision> decisions;  // on every float constant, before patterns
  std::vector<std::string> notes;         // what was changed or chosen, in sentences
};

// The result's opset is the model's own, at least 18. BatchNormalization and
// Dropout get a training-mode copy of the forward pass in the algorithm; running
// statistics are written back. initialization draws new weights.
absl::StatusOr<AuthorResult> MakeTrainable(const Model& model, const AuthorOptions& options,
                                           const Environment& environment);

// What MakeTrainable would find of gradients: which weights get one, which cannot and why.
absl::StatusOr<GradientReport> ReportTraining(const Model& model, const AuthorOptions& options,
                                              const Environment& environment);

// The output that is trained where none is named: the first float one (classifiers of
// scikit-learn put the label first), else the first. "" where there is none.
std::string DefaultOutput(const Graph& graph);

// The operator at the end of the path to `output`, past Identity: "Softmax", ...
std::string LastOperator(const Graph& graph, const std::string& output);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_AUTHOR_H_
