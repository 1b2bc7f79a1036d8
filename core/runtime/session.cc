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
  std::map<std::string, FeedType> types;
  for (const auto& [name, value] : feeds) types[name] = FeedType::Of(value);
  ONWARD_ASSIGN_OR_RETURN(Executor * executor, Prepare(types));
  return executor->RunValues(feeds, variables, options);
}

absl::StatusOr<TensorMap> Session::Run(const TensorMap& feeds, Variables* variables,
                                       const RunOptions& options) {
  std::map<std::string, FeedType> types;
  for (const auto& [name, tensor] : feeds) types[name] = {tensor.dtype(), tensor.shape()};
  ONWARD_ASSIGN_OR_RETURN(Executor * executor, Prepare(types));
  return executor->Run(feeds, variables, options);
}

}  // namespace onward
