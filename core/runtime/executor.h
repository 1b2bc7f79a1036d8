// SPDX-License-Identifier: Apache-2.0
// Running plans. An Executor owns one plan's memory; a Session keeps one
// executor per input-shape signature.
#ifndef ONWARD_CORE_RUNTIME_EXECUTOR_H_
#define ONWARD_CORE_RUNTIME_EXECUTOR_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/runtime/compile.h"
#include "core/runtime/plan.h"

namespace onward {

using TensorMap = std::map<std::string, Tensor>;

// The mutable state: each tensor owns its memory and is written in place.
using Variables = absl::btree_map<std::string, Tensor>;

class Executor;

struct RunOptions {
  RandomState random;
  // Set from elsewhere to stop between two kernels; nothing is assigned then.
  const std::atomic<bool>* cancel = nullptr;
  // Called after each kernel with its node and nanoseconds (profiles).
  std::function<void(const PlanStep&, int64_t)> on_step;
  // Who assigned the variables last. An executor that finds itself there relies on what
  // it noted of them, and need not look at every element again to tell whether the new
  // values would be finite. Whoever changes a variable by other means sets it to null.
  const Executor** writer = nullptr;
};

class Executor {
 public:
  explicit Executor(std::shared_ptr<const Plan> plan);
  const Plan& plan() const { return *plan_; }

  // Computes everything, then assigns variables. On error nothing is assigned; a new
  // value that is not finite is one. Outputs are copies that the caller owns.
  absl::StatusOr<TensorMap> Run(const TensorMap& feeds, Variables* variables,
                                const RunOptions& options);

 private:
  struct BoundStep {
    const PlanStep* step;
    std::vector<const Tensor*> inputs;
    std::vector<Tensor*> outputs;
    void* workspace;
    // Of commit steps.
    std::unique_ptr<UpdateNotes> notes = nullptr;
    std::unique_ptr<bool[]> bad = nullptr;  // per output
  };
  static KernelCall CallOf(const BoundStep& bound, const RandomState& random);
  void Bind(const std::vector<PlanStep>& steps, std::vector<BoundStep>* bound);
  absl::Status BindSources(const TensorMap& feeds, Variables* variables);
  absl::Status RunSteps(const std::vector<BoundStep>& steps, const RunOptions& options);
  absl::Status RunDynamic(const BoundStep& bound, const RunOptions& options);
  absl::Status CheckFinite() const;
  absl::Status CheckUpdates(const Variables& variables, bool notes_hold);
  absl::Status BlameUpdate(const Variables& variables) const;

  std::shared_ptr<const Plan> plan_;
  Tensor arena_;
  std::vector<Tensor> tensors_;             // one per plan value
  std::vector<std::vector<int>> views_of_;  // root -> views that follow its pointer
  std::vector<BoundStep> compute_, commit_;
};

class Session {
 public:
  // `options.feeds` is filled per signature.
  Session(Graph graph, CompileOptions options)
      : graph_(std::move(graph)), options_(std::move(options)) {}

  absl::StatusOr<TensorMap> Run(const TensorMap& feeds, Variables* variables,
                                const RunOptions& options = {});
  // The executor for feeds of these types, compiled on first use.
  absl::StatusOr<Executor*> Prepare(const std::map<std::string, FeedType>& feeds);
  const Graph& graph() const { return graph_; }

 private:
  Graph graph_;
  CompileOptions options_;
  std::vector<std::pair<std::map<std::string, FeedType>, std::unique_ptr<Executor>>> executors_;
};

// Checks a feed against a declared input type; the message names both.
absl::Status CheckFeed(const NamedType& input, const Tensor& tensor);

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_EXECUTOR_H_
