// SPDX-License-Identifier: Apache-2.0
// A graph whose inputs and outputs are known by name.
#ifndef ONWARD_CORE_RUNTIME_SESSION_H_
#define ONWARD_CORE_RUNTIME_SESSION_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/runtime/execute/program.h"

namespace onward {

class Session {
 public:
  // `options.feeds` is filled per signature.
  Session(Graph graph, CompileOptions options)
      : program_(std::make_unique<Program>(std::make_shared<const Graph>(std::move(graph)),
                                           std::move(options))) {}

  absl::StatusOr<TensorMap> Run(const TensorMap& feeds, Variables* variables,
                                const RunOptions& options = {});
  absl::StatusOr<ValueMap> RunValues(const ValueMap& feeds, Variables* variables,
                                     const RunOptions& options = {});
  // Begins to copy what a later run is fed to the accelerators (Executor::Stage), if it has run
  // before on feeds of these types.
  absl::Status Stage(const TensorMap& feeds);
  // The executor for feeds of these types, compiled on first use.
  absl::StatusOr<Executor*> Prepare(const std::map<std::string, FeedType>& feeds);
  const Graph& graph() const { return program_->graph(); }

 private:
  std::unique_ptr<Program> program_;
};

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_SESSION_H_
