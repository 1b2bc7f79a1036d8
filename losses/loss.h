// SPDX-License-Identifier: Apache-2.0
// Losses as ONNX graphs. A loss is named with options, as in
//
//   cross_entropy:ignore_index=-100,label_smoothing=0.1
//
// and becomes nodes that compute one scalar: the mean over the batch, or with reduction=sum
// the sum. docs/training-recipes.md lists all losses; options are PyTorch's by name, default
// and meaning where it has the same.
//
// axis says where the classes are: 1 as in ONNX ([N, C, D...]), or -1 as language
// models have it ([N, D..., C]). logits tells what the model's output is: "logits",
// "probabilities" (it ends in Softmax or Sigmoid) or "log_probabilities" (LogSoftmax).
// label_type=uint8 and so on declares labels of another type, which are converted.
#ifndef ONWARD_LOSSES_LOSS_H_
#define ONWARD_LOSSES_LOSS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/spec.h"
#include "core/graph/builder.h"
#include "core/graph/graph.h"

namespace onward {

struct LossSpec {
  std::string name;
  std::map<std::string, std::string> options;  // only those given
};

std::vector<std::string> LossNames();

// What docs/training-recipes.md says of each.
std::vector<Description> DescribeLosses();

// Refuses unknown names and options, naming the nearest valid one.
absl::StatusOr<LossSpec> ParseLoss(absl::string_view text);

// What ParseLoss reads back.
std::string LossText(const LossSpec& spec);

// Whether the labels are class numbers that scores are compared with.
bool IsClassLoss(const LossSpec& spec);

// How many outputs of the model it compares where none are named.
size_t OutputsOf(const LossSpec& spec);
// Whether there is a label, with so many outputs: some compare outputs with each other alone.
bool TakesLabel(const LossSpec& spec, size_t outputs);

// An option of a checked spec, or its default; a switch is off unless given.
std::string WordOf(const LossSpec& spec, const std::string& option, const std::string& otherwise);
bool SwitchedOn(const LossSpec& spec, const std::string& option);

// The type of the label that goes with a (first) model output of this type: int64 without
// the class axis (and without trailing dimensions of one element, so that [N, C, 1, 1]
// takes labels [N]), or the type of the output itself for regression.
ValueType LabelType(const LossSpec& spec, const ValueType& output, size_t outputs = 1);

// The loss, a scalar of the output's type. `label` is not looked at where there is none.
absl::StatusOr<Expr> BuildLoss(GraphBuilder& b, const LossSpec& spec,
                               absl::Span<const Expr> outputs, const Expr& label);
absl::StatusOr<Expr> BuildLoss(GraphBuilder& b, const LossSpec& spec, const Expr& output,
                               const Expr& label);

}  // namespace onward

#endif  // ONWARD_LOSSES_LOSS_H_
