// SPDX-License-Identifier: Apache-2.0
#include "training_info/averages.h"

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "training_info/export.h"
#include "training_info/import.h"

namespace onward {

std::map<std::string, std::string> AveragesOf(const TrainingSpec& spec) {
  std::map<std::string, std::string> averages;
  for (const TrainingEntry& entry : spec.entries) {
    for (const auto& [name, tensor] : entry.algorithm.initializers) {
      const std::string weight = entry.algorithm.ValueMetadata(name, kAverageOfKey);
      const auto it = spec.inference.initializers.find(weight);
      const bool fits = it != spec.inference.initializers.end() &&
                        it->second.shape() == tensor.shape() && IsFloating(tensor.dtype()) &&
                        IsFloating(it->second.dtype());
      if (fits) averages.emplace(name, weight);
    }
  }
  return averages;
}

Variables WithAverages(const std::map<std::string, std::string>& averages,
                       const Variables& variables) {
  Variables averaged = variables;
  for (const auto& [average, weight] : averages) {
    const auto from = variables.find(average), to = variables.find(weight);
    if (from == variables.end() || to == variables.end()) continue;
    const DType dtype = to->second.dtype();
    averaged[weight] =
        from->second.dtype() == dtype ? from->second : RoundedTo(dtype, from->second);
  }
  return averaged;
}

absl::Status UseAverages(Model* model) {
  ONWARD_ASSIGN_OR_RETURN(const TrainingSpec spec, ImportTraining(*model));
  const std::map<std::string, std::string> averages = AveragesOf(spec);
  if (averages.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", model->path(),
                     "' holds no averages of its weights; `make-trainable --ema 0.999` (or `train "
                     "--ema 0.999`) makes a training keep them"));
  }
  Variables held, weights;
  for (const auto& [average, weight] : averages) {
    held.emplace(average, *spec.FindInitializer(average));
    held.emplace(weight, spec.inference.initializers.at(weight));
  }
  held = WithAverages(averages, held);
  for (const auto& [average, weight] : averages) weights.emplace(weight, held.at(weight));
  ONWARD_ASSIGN_OR_RETURN(*model, WithVariables(*model, weights));
  return absl::OkStatus();
}

}  // namespace onward
