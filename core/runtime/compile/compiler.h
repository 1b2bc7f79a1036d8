// SPDX-License-Identifier: Apache-2.0
// One graph on its way to a plan: compile.cc has the stages and what surrounds the nodes,
// compile_nodes.cc what becomes of one node. Used by these two alone.
#ifndef ONWARD_CORE_RUNTIME_COMPILE_COMPILER_H_
#define ONWARD_CORE_RUNTIME_COMPILE_COMPILER_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/graph/graph.h"
#include "core/graph/operator_set.h"
#include "core/graph/patterns/pattern.h"
#include "core/runtime/compile/compile_options.h"
#include "core/runtime/compile/evaluate.h"
#include "core/runtime/compile/known_types.h"
#include "core/runtime/plan/plan.h"
#include "core/runtime/plan/plan_builder.h"
#include "core/runtime/rewrite/widen.h"

namespace onward {

class Compiler {
 public:
  // `kept_on_host`: values whose nodes no accelerator is asked for.
  Compiler(const Graph& graph, const CompileOptions& options,
           const absl::flat_hash_set<std::string>& kept_on_host);

  absl::StatusOr<std::shared_ptr<const Plan>> Run();
  // Values whose nodes had better be kept on the host.
  const absl::flat_hash_set<std::string>& islands() const { return islands_; }

 private:
  // Types for the rewrites that follow, which see no node that breaks a demand of its
  // operator. Other errors wait until the node itself is compiled.
  absl::Status InferConcreteTypes();
  // Rewrites into operators that all devices have kernels for.
  void Rewrite();
  bool AllHave(const char* op) const;
  // The types of a node's outputs: as the rewrites saw them, where these leave nothing open.
  absl::StatusOr<std::vector<ValueType>> TypesOf(const Node& node,
                                                 absl::Span<const InputFact> facts) const;

  absl::Status AddSources(const std::vector<std::string>& needed);
  // Where a variable lives: on the first accelerator, unless it is a small integer.
  int HomeOf(const Tensor& variable) const;

  absl::Status AddNodes();
  // Where a node fails for want of a kernel, all that do are named.
  absl::Status WithOthers(const Node& node, const absl::Status& status) const;
  // Adds one node; a non-empty result replaces it instead.
  absl::StatusOr<std::vector<Node>> AddNode(const Node& node);
  bool ReadsRest(const Node& node) const;
  // Leaves a node to the continuation, which is compiled when the types of what it reads
  // are known.
  std::vector<Node> Defer(const Node& node);
  absl::StatusOr<std::vector<int>> InputsOf(const Node& node,
                                            const std::vector<std::string>& names) const;
  bool IsFeed(int id) const;
  const Tensor* ConstantAt(const std::string& name) const;
  absl::StatusOr<std::vector<Node>> AddControl(const Node& node);
  absl::StatusOr<std::vector<Node>> AddOnValues(const Node& node, const std::vector<int>& inputs);
  // An operator on tensors that is fed something else.
  absl::StatusOr<std::vector<Node>> AddOnOtherKinds(const Node& node,
                                                    const std::vector<int>& inputs);
  std::string NextPrefix(const Node& node);
  absl::StatusOr<std::vector<Node>> AddOnTensors(const Node& node, const std::vector<int>& inputs);
  // Adds the node on the first accelerator that has a kernel for it; false where none has, and
  // then `why` says so.
  absl::StatusOr<bool> AddOnAccelerator(const Node& node, const std::vector<int>& inputs,
                                        std::vector<ValueSpec> specs,
                                        std::vector<ValueSpec> outputs, std::string* why);
  // The first operator in the bodies of If, Loop or Scan that no accelerator has a kernel for; ""
  // where all can run there.
  std::string WithoutKernel(const Node& node) const;
  std::string WithoutKernel(const std::vector<Node>& nodes) const;
  // Inputs of such a node whose bodies run there: copied as far as they are worth it.
  std::vector<int> InputsThere(const Node& node, std::vector<int> inputs);
  // Whether accelerators have kernels for most nodes of a body.
  bool SuitsAccelerators(const Function& body) const;
  // Shape arithmetic: small integers made of values that are on the host already.
  bool IsHostArithmetic(const std::vector<int>& inputs,
                        const std::vector<ValueSpec>& outputs) const;
  // Of a node that stands, with others, for a call on the host; else null.
  const std::string* WhyWidened(const Node& node) const;
  void ReportConstants(const std::vector<int>& inputs) const;
  // Says which layout the only reader of an output would like.
  void AddWishes(const Node& node, std::vector<ValueSpec>* outputs) const;
  // Shape and Size of a known shape are constants whatever their input holds.
  bool FoldShape(const Node& node, const std::vector<int>& inputs);
  static bool SmallEnoughToFold(const std::vector<ValueSpec>& outputs);
  // What a node on constants gives; of large ones, what it gave another plan.
  absl::StatusOr<std::vector<Tensor>> FoldedBefore(const Node& node,
                                                   absl::Span<const InputFact> facts,
                                                   const std::vector<ValueType>& types);
  absl::Status Fold(const Node& node, absl::Span<const InputFact> facts,
                    const std::vector<ValueType>& types);

  // Of each update.
  absl::StatusOr<std::vector<PlanGuard>> Guards();
  absl::Status AddOutputs(const std::vector<std::string>& wanted);
  // Whether something that is checked or assigned where accelerators work has a type that only the
  // step which makes it can tell: then another plan does that, which knows where it has come to
  // lie.
  bool LooksAtLateValues() const;
  // The nodes that were left, as a graph that is fed what it reads of this one. All that
  // the caller wants is its business: values that are there already pass through it.
  absl::Status AddRest(const std::vector<std::string>& wanted,
                       const std::vector<std::string>& needed);

  absl::StatusOr<std::shared_ptr<const Plan>> PlanMemory();
  absl::Status CheckAccelerators() const;
  // Variables and constants are there beside the arena.
  size_t ResidentBytes(int device) const;

  Graph graph_;
  const CompileOptions& options_;
  PlanBuilder builder_;
  Plan& plan_;
  Arrangements* arrangements_ = nullptr;  // of the family, if it is of one
  std::optional<KnownTypes> known_;
  const OperatorSet* operators_;
  EvaluateContext context_;
  const absl::flat_hash_set<std::string>& kept_on_host_;
  absl::flat_hash_set<std::string> islands_;
  std::vector<std::pair<std::string, std::string>> updates_;  // options_.updates, opened
  UpdateConditions conditions_;
  absl::flat_hash_set<std::string> keep_;
  std::optional<PatternGraph> readers_;  // of the graph that is compiled
  Widener widener_;
  // What nodes give that stand for a call on the host, and why they are there.
  absl::flat_hash_map<std::string, std::string> of_widened_;
  std::vector<Node> rest_;                    // nodes that read what only data can tell
  absl::flat_hash_set<std::string> of_rest_;  // what they give
  int next_body_ = 0;
};

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_COMPILE_COMPILER_H_
