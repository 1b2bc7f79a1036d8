// SPDX-License-Identifier: Apache-2.0
#include "tests/support/plain_step.h"

#include <utility>

#include "core/base/json.h"
#include "core/base/status.h"
#include "environment/environment.h"
#include "training_info/lower.h"
#include "training_info/portable_step.h"

namespace onward {

absl::StatusOr<PlainStep> PlainStep::Create(const Model& step) {
  PlainStep made;
  ONWARD_ASSIGN_OR_RETURN(made.graph_, RunnableGraph(step, DefaultEnvironment()));
  ONWARD_ASSIGN_OR_RETURN(const Json updates, ParseJson(step.Metadata(kMetaUpdates)));
  for (const auto& [variable, output] : updates.members()) {
    if (!made.graph_.IsInput(variable) || !made.graph_.initializers.contains(variable)) {
      return absl::NotFoundError(variable + " is no input with a default");
    }
    if (!made.graph_.IsOutput(output.text())) {
      return absl::NotFoundError(output.text() + " is no output");
    }
    made.updates_[variable] = output.text();
  }
  // What is fed is an input, whatever the file has for it.
  for (const NamedType& in : made.graph_.inputs) {
    const auto it = made.graph_.initializers.find(in.name);
    if (it == made.graph_.initializers.end()) continue;
    made.state_[in.name] = it->second.Clone();
    made.graph_.initializers.erase(it);
  }
  CompileOptions options = DefaultEnvironment().compile_options();
  made.session_ = std::make_unique<Session>(made.graph_, options);
  return made;
}

absl::StatusOr<ValueMap> PlainStep::Run(const ValueMap& feeds) {
  ValueMap given;
  for (const auto& [name, tensor] : state_) given[name] = tensor;
  for (const auto& [name, value] : feeds) {
    if (graph_.IsInput(name)) given[name] = value;
  }
  ONWARD_ASSIGN_OR_RETURN(ValueMap outputs, session_->RunValues(given, nullptr));
  for (const auto& [variable, output] : updates_) {
    state_[variable] = outputs.at(output).tensor()->Clone();
  }
  return outputs;
}

void PlainStep::Set(const std::string& variable, const Tensor& value) {
  if (const auto it = state_.find(variable); it != state_.end()) it->second = value.Clone();
}

}  // namespace onward
