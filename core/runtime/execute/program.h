// SPDX-License-Identifier: Apache-2.0
// A graph run at whatever types arrive: a session, a branch of If, a body of Loop or Scan,
// and what is left of a graph behind values whose types only data can tell.
#ifndef ONWARD_CORE_RUNTIME_EXECUTE_PROGRAM_H_
#define ONWARD_CORE_RUNTIME_EXECUTE_PROGRAM_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/runtime/execute/executor.h"

namespace onward {

class Program {
 public:
  // `options.feeds` is filled per signature.
  Program(std::shared_ptr<const Graph> graph, CompileOptions options);

  const Graph& graph() const { return *graph_; }
  // Names of the inputs, in the order that runs take them.
  const std::vector<std::string>& inputs() const { return inputs_; }

  // The results, in the order of the wanted outputs; good until the next run.
  absl::StatusOr<absl::Span<const Value>> Run(absl::Span<const Value* const> inputs,
                                              Variables* variables, const RunOptions& options);
  // The executor for inputs of these types, compiled on first use.
  absl::StatusOr<Executor*> Prepare(absl::Span<const Value* const> inputs);
  absl::StatusOr<Executor*> Prepare(std::vector<FeedType> types);
  // Null where it is not compiled yet.
  Executor* Find(absl::Span<const Value* const> inputs);

 private:
  struct Entry {
    std::vector<FeedType> types;  // by input; one that is not given has no type
    std::unique_ptr<Executor> executor;
  };
  Executor* Found(size_t entry);
  void MakeRoomFor(const Plan& plan);
  // Those of the values, if feeds of these types lead to the same ones as the first did.
  std::shared_ptr<ElementTypes> ElementTypesFor(const std::vector<FeedType>& types);

  std::shared_ptr<const Graph> graph_;
  CompileOptions options_;
  std::vector<std::string> inputs_;
  std::vector<Entry> entries_;  // the one used last comes first
  std::shared_ptr<ElementTypes> element_types_;
  std::vector<DType> element_types_of_;  // the feeds they follow from
};

// Runs `executor` and whatever is left behind it, then assigns variables. Returns the
// executor that has the results.
absl::StatusOr<Executor*> RunChain(Executor* executor, absl::Span<const Value* const> inputs,
                                   Variables* variables, const RunOptions& options);

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_EXECUTE_PROGRAM_H_
