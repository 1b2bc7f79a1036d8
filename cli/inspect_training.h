// SPDX-License-Identifier: Apache-2.0
// What `onward inspect` says of the training that a file carries: what a step assigns, by which
// losses, optimizer and rate, in which precision, and with what state.
#ifndef ONWARD_CLI_INSPECT_TRAINING_H_
#define ONWARD_CLI_INSPECT_TRAINING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/onnx_io/model.h"
#include "training_info/spec.h"

namespace onward {

void PrintTraining(const Model& model, const TrainingSpec& spec);
// What is not known is null.
void WriteTraining(const Model& model, const TrainingSpec& spec, JsonWriter* w);

void WriteValues(const char* key, const std::vector<NamedType>& values, JsonWriter* w);
std::string OperatorName(const Node& node);

}  // namespace onward

#endif  // ONWARD_CLI_INSPECT_TRAINING_H_
