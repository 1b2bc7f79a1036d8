// SPDX-License-Identifier: Apache-2.0
#include "training_info/spec.h"

namespace onward {

std::set<std::string> TrainingSpec::StateVariables() const {
  std::set<std::string> names;
  for (const TrainingEntry& entry : entries) {
    for (const Binding& b : entry.initialization_bindings) names.insert(b.variable);
    for (const Binding& b : entry.update_bindings) names.insert(b.variable);
  }
  return names;
}

const Tensor* TrainingSpec::FindInitializer(const std::string& name) const {
  if (auto it = inference.initializers.find(name); it != inference.initializers.end())
    return &it->second;
  for (const TrainingEntry& entry : entries) {
    auto it = entry.algorithm.initializers.find(name);
    if (it != entry.algorithm.initializers.end()) return &it->second;
  }
  return nullptr;
}

}  // namespace onward
