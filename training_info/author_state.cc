// SPDX-License-Identifier: Apache-2.0
#include "training_info/author_state.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace onward {

Expr AlgorithmState::Declare(GraphBuilder& b, const std::string& name, const Tensor& start) {
  const std::string unique = b.UniqueName(name);
  b.graph().types[unique] = ValueType::Of(start.dtype(), start.shape());
  b.graph().initializers.emplace(unique, start);
  return b.Value(unique);
}

Expr AlgorithmState::Add(GraphBuilder& b, const std::string& name, Tensor start) {
  Expr variable = Declare(b, name, start);
  starts_.emplace_back(variable.name(), std::move(start));
  return variable;
}

Expr AlgorithmState::AddLike(GraphBuilder& b, const std::string& name, const std::string& weight,
                             Tensor start, const char* key) {
  Expr variable = Declare(b, name, start);
  likes_.push_back({variable.name(), weight, std::move(start), key});
  return variable;
}

void AlgorithmState::AddTo(TrainingEntry* entry) const {
  for (const auto& [name, start] : starts_) entry->algorithm.initializers.emplace(name, start);
  for (const Like& like : likes_) {
    entry->algorithm.initializers.emplace(like.variable, like.start);
    entry->algorithm.metadata[like.variable][like.key] = like.weight;
  }
  entry->update_bindings = bindings_;
}

absl::Status AlgorithmState::InitializeLikeWeights(const OperatorSet& operators,
                                                   TrainingEntry* entry) const {
  Graph& init = entry->initialization;
  GraphBuilder b(&init, &operators, "init");
  for (const Like& like : likes_) {
    const auto drawn = absl::c_find_if(entry->initialization_bindings, [&](const Binding& binding) {
      return binding.variable == like.weight;
    });
    if (drawn == entry->initialization_bindings.end()) continue;
    std::string value = drawn->value;
    const auto out =
        absl::c_find_if(init.outputs, [&](const NamedType& o) { return o.name == value; });
    if (out == init.outputs.end() || out->type.dtype != like.start.dtype()) {
      value = b.Named(Cast(b.Value(value), like.start.dtype()),
                      b.UniqueName(absl::StrCat(like.variable, "__init")))
                  .name();
      init.outputs.push_back({value, ValueType::Of(like.start.dtype(), like.start.shape())});
    }
    entry->initialization_bindings.push_back({like.variable, value});
  }
  return b.status();
}

}  // namespace onward
