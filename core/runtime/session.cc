// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/session.h"

#include <utility>
#include <vector>

#include "core/base/status.h"

namespace onward {

absl::StatusOr<Executor*> Session::Prepare(const std::map<std::string, FeedType>& feeds) {
  std::vector<FeedType> types;
  for (const std::string& name : program_->inputs()) {
    auto it = feeds.find(name);
    types.push_back(it == feeds.end() ? FeedType{} : it->second);
  }
  return program_->Prepare(std::move(types));
}

absl::StatusOr<ValueMap> Session::RunValues(const ValueMap& feeds, Variables* variables,
                                            const RunOptions& options) {
  std::vector<const Value*> inputs;
  for (const std::string& name : program_->inputs()) {
    auto it = feeds.find(name);
    inputs.push_back(it == feeds.end() ? nullptr : &it->second);
  }
  ONWARD_ASSIGN_OR_RETURN(Executor * executor, program_->Prepare(inputs));
  return executor->RunValues(feeds, variables, options);
}

absl::Status Session::Stage(const TensorMap& feeds) {
  const ValueMap values = ToValues(feeds);
  std::vector<const Value*> inputs;
  for (const std::string& name : program_->inputs()) {
    auto it = values.find(name);
    inputs.push_back(it == values.end() ? nullptr : &it->second);
  }
  Executor* const executor = program_->Find(inputs);
  return executor == nullptr ? absl::OkStatus() : executor->Stage(inputs);
}

absl::StatusOr<TensorMap> Session::Run(const TensorMap& feeds, Variables* variables,
                                       const RunOptions& options) {
  ONWARD_ASSIGN_OR_RETURN(ValueMap results, RunValues(ToValues(feeds), variables, options));
  return ToTensors(std::move(results));
}

}  // namespace onward
