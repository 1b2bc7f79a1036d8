// SPDX-License-Identifier: Apache-2.0
// A graph run at whatever types arrive: a session, a branch of If, a body of Loop or Scan,
// and what is left of a graph behind values whose types only data can tell.
#ifndef ONWARD_CORE_RUNTIME_EXECUTE_PROGRAM_H_
#define ONWARD_CORE_RUNTIME_EXECUTE_PROGRAM_H_

#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/runtime/execute/executor.h"

namespace onward {

class Program {
 public:
  // `options.feeds` is filled per signature.
  Program(std::shared_ptr<const Graph> graph, CompileOptions options);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

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
    size_t signature;             // what Find and Prepare look for first
    std::vector<FeedType> types;  // by input; one that is not given has no type
    size_t bytes;                 // that the plan keeps, about
    std::unique_ptr<Executor> executor;
  };
  using Entries = std::list<Entry>;
  // The entry of this signature that `matches`, which becomes the first one; or null.
  Executor* Find(size_t signature, absl::FunctionRef<bool(const Entry&)> matches);
  void MakeRoomFor(const Plan& plan);
  void DropLast();
  // Those of the values, if feeds of these types lead to the same ones as the first did.
  std::shared_ptr<ElementTypes> ElementTypesFor(const std::vector<FeedType>& types);

  std::shared_ptr<const Graph> graph_;
  CompileOptions options_;
  const bool inner_;  // one of a family that is there already
  std::vector<std::string> inputs_;
  Entries entries_;  // the one used last comes first
  std::unordered_multimap<size_t, Entries::iterator> by_signature_;
  std::shared_ptr<Arena> arena_ = std::make_shared<Arena>();
  std::shared_ptr<ElementTypes> element_types_;
  std::vector<DType> element_types_of_;  // the feeds they follow from
};

// Runs `executor` and whatever is left behind it, then assigns variables. Returns the
// executor that has the results.
absl::StatusOr<Executor*> RunChain(Executor* executor, absl::Span<const Value* const> inputs,
                                   Variables* variables, const RunOptions& options);

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_EXECUTE_PROGRAM_H_
