// SPDX-License-Identifier: Apache-2.0
// How a file is trained, beside optimizer and schedule, and where it stands: the one source of what
// `inspect` and `train` say of it.
#ifndef ONWARD_TRAINING_INFO_TRAINING_FACTS_H_
#define ONWARD_TRAINING_INFO_TRAINING_FACTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/onnx_io/model.h"
#include "training_info/adapters/adapter.h"
#include "training_info/loss_scale.h"
#include "training_info/spec.h"
#include "training_info/stored_recipe.h"

namespace onward {

struct TrainingFacts {
  RecipeFacts said;                             // by the metadata
  std::vector<std::string> losses;              // as --loss takes them
  std::map<std::string, std::string> averages;  // variable -> weight
  std::map<std::string, std::string> masters;
  std::optional<ScaleFacts> scale;
  int64_t accumulated = 0;             // steps since the last update
  int64_t state = 0, state_bytes = 0;  // variables beside those of the inference graph
  std::vector<Adapter> adapters;
};
TrainingFacts GatherTrainingFacts(const Model& model, const TrainingSpec& spec);

// In words; "" where there is nothing to say.
std::string PrecisionWords(const TrainingFacts& facts);     // "products in float16, ..."
std::string AccumulationWords(const TrainingFacts& facts);  // "an update of 4 steps, 1 of ..."
std::string AveragesWords(const TrainingFacts& facts);      // "of 3 weights, decay 0.9"
std::string AdaptersWords(const TrainingFacts& facts);      // "6 of rank 8, alpha 16"

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_TRAINING_FACTS_H_
