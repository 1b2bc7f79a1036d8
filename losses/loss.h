// SPDX-License-Identifier: Apache-2.0
// Losses as ONNX graphs. A loss is named with options, as in
//
//   cross_entropy:ignore_index=-100,label_smoothing=0.1
//
// and becomes nodes that compute one scalar: the mean over the batch.
//
//   cross_entropy  classes, int64 labels   ignore_index, label_smoothing, axis, logits
//   nll            the same, of log-probabilities        ignore_index, axis
//   bce            binary cross entropy of logits        logits
//   mse, l1        squared and absolute error
//   huber          squared near zero, absolute beyond    delta
//
// axis says where the classes are: 1 as in ONNX ([N, C, D...]), or -1 as language
// models have it ([N, D..., C]). logits tells what the model's output is: "logits",
// "probabilities" (it ends in Softmax or Sigmoid) or "log_probabilities" (LogSoftmax).
#ifndef ONWARD_LOSSES_LOSS_H_
#define ONWARD_LOSSES_LOSS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/graph/builder.h"
#include "core/graph/graph.h"

namespace onward {

struct LossSpec {
  std::string name;
  std::map<std::string, std::string> options;  // only those given
};

std::vector<std::string> LossNames();

// Refuses unknown names and options, naming the nearest valid one.
absl::StatusOr<LossSpec> ParseLoss(absl::string_view text);

// What ParseLoss reads back.
std::string LossText(const LossSpec& spec);

// Whether the labels are class numbers.
bool IsClassLoss(const LossSpec& spec);

// The type of the label that goes with a model output of this type: int64 without
// the class axis (and without trailing dimensions of one element, so that [N, C, 1, 1]
// takes labels [N]), or the type of the output itself for regression.
ValueType LabelType(const LossSpec& spec, const ValueType& output);

// The mean loss, a scalar of the output's type.
absl::StatusOr<Expr> BuildLoss(GraphBuilder& b, const LossSpec& spec, const Expr& output,
                               const Expr& label);

}  // namespace onward

#endif  // ONWARD_LOSSES_LOSS_H_
