// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/compile.h"

#include <algorithm>
#include <deque>
#include <new>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/infer.h"
#include "core/graph/inline.h"
#include "core/graph/patterns/pattern.h"
#include "core/graph/random.h"
#include "core/graph/verify.h"
#include "core/runtime/behind_data.h"
#include "core/runtime/commit.h"
#include "core/runtime/control/control.h"
#include "core/runtime/evaluate.h"
#include "core/runtime/fuse.h"
#include "core/runtime/merge_updates.h"
#include "core/runtime/place.h"
#include "core/runtime/plan_builder.h"
#include "core/runtime/pointwise.h"
#include "core/runtime/recompute.h"
#include "core/runtime/unknown_operators.h"

namespace onward {
namespace {

// Folding a constant must never cost more than it saves.
constexpr size_t kMaxFoldedBytes = size_t{64} << 20;
// Each plan looks at all that is left, so that a long chain of plans costs the square.
constexpr int64_t kMostLooks = 1'000'000;

class Compiler {
 public:
  Compiler(const Graph& graph, const CompileOptions& options)
      : graph_(graph), options_(options), builder_(options), plan_(builder_.plan()) {
    plan_.opsets = graph.opsets;
    operators_ = options.operators;
    if (options.element_types != nullptr && !options.element_types->empty()) {
      operators_ = &known_.emplace(*operators_, options.device->kernels(), *options.element_types);
    }
    context_ = {options.device, operators_, &plan_.opsets, {}};
  }

  absl::StatusOr<std::shared_ptr<const Plan>> Run() {
    const std::vector<std::string> wanted = WantedOutputs(graph_, options_);
    std::vector<std::string> needed = wanted;
    for (const auto& [variable, value] : options_.updates) needed.push_back(value);
    for (const std::string& value : options_.finite) needed.push_back(value);
    keep_ = options_.variables;
    keep_.insert(needed.begin(), needed.end());
    // From here on, what is needed is known, and initializers are not fed.
    graph_.outputs.clear();
    std::erase_if(graph_.inputs,
                  [&](const NamedType& in) { return graph_.initializers.contains(in.name); });
    ReadThroughIdentities(&graph_);
    // Variables that are assigned have to reach the last plan, also where nothing reads them.
    std::vector<std::string> here = needed;
    for (const auto& [variable, value] : options_.updates) here.push_back(variable);
    Prune(&graph_, here);
    if (options_.nodes_before == 0) {
      ONWARD_RETURN_IF_ERROR(CheckOperatorsKnown(graph_, *options_.operators, *options_.device));
    }
    rest_ = TakeNodesBehindData(options_, &graph_);
    for (const Node& node : rest_) {
      of_rest_.insert(node.outputs.begin(), node.outputs.end());
      for (std::string& name : AllInputs(node)) here.push_back(std::move(name));
    }
    keep_.insert(here.begin(), here.end());
    ONWARD_RETURN_IF_ERROR(InferConcreteTypes());
    FuseFollowers(keep_, &graph_);
    FuseBatchNormalization(keep_, &graph_);
    if (options_.device->kernels().Find("MaxPoolWinners", kOnwardDomain) != nullptr) {
      KeepWinnersOfPools(keep_, &graph_);
    }
    UpdateRowsOnly(keep_, *options_.operators, &graph_);
    JoinPads(keep_, &graph_);
    Prune(&graph_, here);
    readers_.emplace(&graph_, keep_);
    ONWARD_RETURN_IF_ERROR(AddSources(here));
    ONWARD_RETURN_IF_ERROR(AddNodes());
    if (rest_.empty()) {
      ONWARD_RETURN_IF_ERROR(AddOutputs(wanted));
      ONWARD_RETURN_IF_ERROR(PlanCommit(options_.updates, builder_.ids(), &plan_,
                                        [this](int id) { return builder_.Materialize(id); }));
      MergeUpdates(context_, &plan_);
    } else {
      ONWARD_RETURN_IF_ERROR(AddRest(wanted, needed));
    }
    FusePointwise(&plan_);
    return PlanMemory();
  }

 private:
  // Types for the rewrites that follow, which see no node that breaks a demand of its
  // operator. Other errors wait until the node itself is compiled.
  absl::Status InferConcreteTypes() {
    for (NamedType& in : graph_.inputs) {
      auto it = options_.feeds.find(in.name);
      if (it != options_.feeds.end()) in.type = it->second.type();
    }
    graph_.types.clear();
    ONWARD_RETURN_IF_ERROR(InferKnownTypes(&graph_, *operators_));
    if (options_.element_types != nullptr && !known_.has_value()) {
      for (const auto& [name, type] : graph_.types) {
        if (type.is_tensor() && type.known()) options_.element_types->emplace(name, type.dtype);
      }
    }
    return absl::OkStatus();
  }

  // The types of a node's outputs: as the rewrites saw them, where these leave nothing open.
  absl::StatusOr<std::vector<ValueType>> TypesOf(const Node& node,
                                                 absl::Span<const InputFact> facts) const {
    std::vector<ValueType> types(node.outputs.size());
    for (size_t i = 0; i < types.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      const ValueType* type = graph_.TypeOf(node.outputs[i]);
      if (type == nullptr || !type->is_tensor() || !type->StaticShape().has_value()) {
        return operators_->Infer(node, facts, plan_.opsets);
      }
      types[i] = *type;
    }
    return types;
  }

  absl::Status AddSources(const std::vector<std::string>& needed) {
    for (const auto& [name, tensor] : graph_.initializers) {
      if (!options_.variables.contains(name)) {
        builder_.AddConstant(name, tensor);
        continue;
      }
      plan_.variables.emplace_back(name, builder_.AddSource(name, tensor.dtype(), tensor.shape(),
                                                            PlanValue::Storage::kVariable));
    }
    absl::flat_hash_set<std::string> read(needed.begin(), needed.end());
    for (const Node& node : graph_.nodes) {
      for (std::string& v : AllInputs(node)) read.insert(std::move(v));
    }
    for (int i = 0; i < static_cast<int>(graph_.inputs.size()); ++i) {
      const NamedType& in = graph_.inputs[i];
      if (builder_.Find(in.name) >= 0 || !read.contains(in.name)) continue;
      auto it = options_.feeds.find(in.name);
      if (it == options_.feeds.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("input '", in.name, "' (", in.type.ToString(), ") is not given"));
      }
      const FeedType& type = it->second;
      const int id =
          type.held == nullptr
              ? builder_.AddSource(in.name, type.dtype, type.shape, PlanValue::Storage::kFeed)
              : builder_.AddSource(in.name, DType::kUndefined, std::nullopt,
                                   PlanValue::Storage::kValue);
      plan_.feeds.push_back({in.name, id, i});
    }
    return absl::OkStatus();
  }

  absl::Status AddNodes() {
    std::deque<Node> work(graph_.nodes.begin(), graph_.nodes.end());
    int64_t budget = kMaxExpandedNodes;
    while (!work.empty()) {
      if (--budget < 0) {
        return absl::ResourceExhaustedError("the graph expands to more than a million nodes");
      }
      Node node = std::move(work.front());
      work.pop_front();
      absl::StatusOr<std::vector<Node>> body = AddNode(node);
      if (!body.ok()) return WithOthers(node, body.status());
      work.insert(work.begin(), std::make_move_iterator(body->begin()),
                  std::make_move_iterator(body->end()));
    }
    return absl::OkStatus();
  }

  // Where a node fails for want of a kernel, all that do are named.
  absl::Status WithOthers(const Node& node, const absl::Status& status) const {
    const bool missing = options_.device->kernels().Find(node.op_type, node.domain) == nullptr;
    if (!missing || status.code() != absl::StatusCode::kUnimplemented) return status;
    const absl::Status all = CheckKernelsExist(graph_, *options_.operators, *options_.device);
    return all.ok() ? status : all;
  }

  // Adds one node; a non-empty result replaces it instead.
  absl::StatusOr<std::vector<Node>> AddNode(const Node& node) {
    if (ReadsRest(node)) return Defer(node);
    if (IsControl(node)) return AddControl(node);
    ONWARD_ASSIGN_OR_RETURN(const std::vector<int> inputs, InputsOf(node, node.inputs));
    if (RunsOnValues(node, *options_.device)) return AddOnValues(node, inputs);
    bool other_kinds = false;
    for (const int id : inputs) {
      if (id < 0 || builder_.value(id).storage != PlanValue::Storage::kValue) continue;
      if (!IsFeed(id)) return Defer(node);
      other_kinds = true;
    }
    if (other_kinds) return AddOnOtherKinds(node, inputs);
    return AddOnTensors(node, inputs);
  }

  bool ReadsRest(const Node& node) const {
    const auto reads = [&](const std::string& name) { return of_rest_.contains(name); };
    return !rest_.empty() && absl::c_any_of(AllInputs(node), reads);
  }

  // Leaves a node to the continuation, which is compiled when the types of what it reads
  // are known.
  std::vector<Node> Defer(const Node& node) {
    of_rest_.insert(node.outputs.begin(), node.outputs.end());
    rest_.push_back(node);
    return {};
  }

  absl::StatusOr<std::vector<int>> InputsOf(const Node& node,
                                            const std::vector<std::string>& names) const {
    std::vector<int> inputs(names.size(), -1);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (names[i].empty()) continue;
      inputs[i] = builder_.Find(names[i]);
      if (inputs[i] < 0) {
        return NodeError(node, absl::StrCat("reads '", names[i], "', which nothing produces"));
      }
    }
    return inputs;
  }

  bool IsFeed(int id) const {
    return absl::c_any_of(plan_.feeds, [&](const PlanFeed& feed) { return feed.id == id; });
  }

  const Tensor* ConstantAt(const std::string& name) const {
    const int id = builder_.Find(name);
    if (id < 0 || builder_.value(id).storage != PlanValue::Storage::kConstant) return nullptr;
    return builder_.value(id).layout == nullptr ? &builder_.value(id).constant : nullptr;
  }

  absl::StatusOr<std::vector<Node>> AddControl(const Node& node) {
    if (node.Is("If") && node.HasInput(0)) {
      const Tensor* condition = ConstantAt(node.inputs[0]);
      if (condition != nullptr && condition->dtype() == DType::kBool &&
          condition->elements() == 1) {
        return ExpandBranch(node, *condition->data<bool>(), NextPrefix(node), &readers_->names());
      }
    }
    std::vector<std::string> names;
    ONWARD_ASSIGN_OR_RETURN(
        std::shared_ptr<const Control> control,
        CloseBodies(
            node, options_, plan_.opsets,
            [this](const std::string& name) { return ConstantAt(name); }, &names));
    ONWARD_ASSIGN_OR_RETURN(const std::vector<int> inputs, InputsOf(node, names));
    const Node& closed = control->node;
    builder_.AddLate(closed, {}, control, inputs);
    return std::vector<Node>();
  }

  absl::StatusOr<std::vector<Node>> AddOnValues(const Node& node, const std::vector<int>& inputs) {
    ONWARD_ASSIGN_OR_RETURN(Kernel kernel, ChooseKernel({node, {}, {}, plan_.opsets}, context_));
    builder_.AddLate(node, std::move(kernel), nullptr, inputs);
    return std::vector<Node>();
  }

  // An operator on tensors that is fed something else.
  absl::StatusOr<std::vector<Node>> AddOnOtherKinds(const Node& node,
                                                    const std::vector<int>& inputs) {
    if (node.Is("Identity")) {
      builder_.Name(node.outputs[0], inputs[0]);
      return std::vector<Node>();
    }
    std::vector<InputFact> facts(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] >= 0) facts[i] = {graph_.TypeOf(node.inputs[i]), nullptr};
    }
    ONWARD_ASSIGN_OR_RETURN(std::optional<Function> body,
                            operators_->FunctionBody(node, facts, plan_.opsets));
    if (body.has_value()) return ExpandCall(*body, node, NextPrefix(node), &readers_->names());
    std::string types;
    for (const InputFact& fact : facts) {
      absl::StrAppend(&types, types.empty() ? "" : ", ",
                      fact.type == nullptr ? "?" : fact.type->ToString());
    }
    return NodeUnimplemented(node, absl::StrCat("has no kernel for ", types));
  }

  std::string NextPrefix(const Node& node) {
    return absl::StrCat(node.outputs.empty() ? "" : node.outputs[0], "__b", next_body_++, "_");
  }

  absl::StatusOr<std::vector<Node>> AddOnTensors(const Node& node, const std::vector<int>& inputs) {
    bool all_constant = true;
    std::vector<ValueType> types(inputs.size());
    std::vector<InputFact> facts(inputs.size());
    std::vector<ValueSpec> specs(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] < 0) continue;
      const PlanValue& v = builder_.value(inputs[i]);
      types[i] = ValueType::Of(v.dtype, *v.shape);
      const bool constant = v.storage == PlanValue::Storage::kConstant && v.layout == nullptr;
      all_constant &= constant;
      facts[i] = {&types[i], constant ? &v.constant : nullptr};
      specs[i] = {v.dtype, v.shape, v.layout, constant ? &v.constant : nullptr};
    }
    ONWARD_ASSIGN_OR_RETURN(const std::vector<ValueType> out_types, TypesOf(node, facts));
    if (FoldShape(node, inputs)) return std::vector<Node>();
    ONWARD_ASSIGN_OR_RETURN(std::vector<ValueSpec> outputs, OutputSpecs(node, out_types, context_));
    AddWishes(node, &outputs);
    if (all_constant && !IsRandom(node) && SmallEnoughToFold(outputs)) {
      ONWARD_RETURN_IF_ERROR(Fold(node, facts, out_types));
      return std::vector<Node>();
    }
    auto kernel = ChooseKernel({node, specs, outputs, plan_.opsets}, context_);
    if (kernel.ok()) {
      ONWARD_RETURN_IF_ERROR(builder_.AddStep(node, *std::move(kernel), inputs, outputs));
      ReportConstants(inputs);
      return std::vector<Node>();
    }
    if (kernel.status().code() != absl::StatusCode::kNotFound) return kernel.status();
    ONWARD_ASSIGN_OR_RETURN(std::optional<Function> body,
                            operators_->FunctionBody(node, facts, plan_.opsets));
    if (!body.has_value()) return absl::UnimplementedError(kernel.status().message());
    return ExpandCall(*body, node, NextPrefix(node), &readers_->names());
  }

  void ReportConstants(const std::vector<int>& inputs) const {
    if (!options_.looked_at) return;
    for (const int id : inputs) {
      const Tensor* constant = id < 0 ? nullptr : &builder_.value(id).constant;
      if (constant != nullptr && constant->defined()) {
        options_.looked_at(constant->raw(), constant->bytes());
      }
    }
  }

  // Says which layout the only reader of an output would like.
  void AddWishes(const Node& node, std::vector<ValueSpec>* outputs) const {
    for (size_t i = 0; i < outputs->size(); ++i) {
      ValueSpec& out = (*outputs)[i];
      const Node* reader = readers_->OnlyConsumer(node.outputs[i]);
      if (!out.shape.has_value() || reader == nullptr || !reader->Is("Transpose")) continue;
      std::vector<int64_t> perm = reader->Ints("perm");
      if (perm.empty()) {
        for (int axis = out.shape->rank() - 1; axis >= 0; --axis) perm.push_back(axis);
      }
      // The reader is compiled, and refused, after what it reads.
      if (!IsPermutation(perm, out.shape->rank())) continue;
      out.layout = plan_.device->LayoutForTranspose(out.dtype, *out.shape, perm);
    }
  }

  // Shape and Size of a known shape are constants whatever their input holds.
  bool FoldShape(const Node& node, const std::vector<int>& inputs) {
    if (!node.Is("Shape") && !node.Is("Size")) return false;
    const Shape& shape = *plan_.values[inputs[0]].shape;
    if (node.Is("Size")) {
      builder_.AddConstant(node.outputs[0], Tensor::Scalar<int64_t>(shape.elements()));
      return true;
    }
    const int64_t rank = shape.rank();
    auto clamp = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
    const int64_t start = clamp(node.Int("start", 0));
    const int64_t end = std::max(start, clamp(node.Int("end", rank)));
    builder_.AddConstant(
        node.outputs[0],
        Tensor::FromValues<int64_t>(Shape{end - start}, shape.dims().subspan(start, end - start)));
    return true;
  }

  static bool SmallEnoughToFold(const std::vector<ValueSpec>& outputs) {
    size_t bytes = 0;
    for (const ValueSpec& out : outputs) {
      if (out.shape.has_value()) bytes += TensorBytes(out.dtype, *out.shape);
    }
    return bytes <= kMaxFoldedBytes;
  }

  absl::Status Fold(const Node& node, absl::Span<const InputFact> facts,
                    const std::vector<ValueType>& types) {
    ONWARD_ASSIGN_OR_RETURN(std::vector<Tensor> out, EvaluateNode(node, facts, types, context_));
    for (size_t i = 0; i < out.size(); ++i) {
      if (!node.outputs[i].empty()) builder_.AddConstant(node.outputs[i], std::move(out[i]));
    }
    return absl::OkStatus();
  }

  absl::Status AddOutputs(const std::vector<std::string>& wanted) {
    auto place = [&](const std::string& name) -> absl::StatusOr<int> {
      const int id = builder_.Find(name);
      if (id < 0) {
        return absl::InvalidArgumentError(absl::StrCat("output '", name, "' is not produced"));
      }
      builder_.Name(name, builder_.Plain(id));
      return builder_.Find(name);
    };
    for (const std::string& name : wanted) {
      ONWARD_ASSIGN_OR_RETURN(int id, place(name));
      plan_.outputs.emplace_back(name, id);
    }
    for (const std::string& name : options_.finite) {
      ONWARD_ASSIGN_OR_RETURN(int id, place(name));
      plan_.finite.push_back(id);
    }
    for (const auto& [variable, value] : options_.updates)
      ONWARD_RETURN_IF_ERROR(place(value).status());
    return absl::OkStatus();
  }

  // The nodes that were left, as a graph that is fed what it reads of this one. All that
  // the caller wants is its business: values that are there already pass through it.
  absl::Status AddRest(const std::vector<std::string>& wanted,
                       const std::vector<std::string>& needed) {
    auto rest = std::make_shared<Continuation>();
    rest->options = options_;
    rest->options.feeds.clear();
    rest->options.element_types = nullptr;
    rest->options.outputs = wanted;
    rest->options.nodes_before += static_cast<int64_t>(rest_.size());
    if (rest->options.nodes_before > kMostLooks) {
      return absl::ResourceExhaustedError(
          "too many values in a row have shapes that only data can tell");
    }
    Graph graph;
    graph.name = graph_.name;
    graph.opsets = graph_.opsets;
    graph.nodes = std::move(rest_);
    ONWARD_RETURN_IF_ERROR(SortNodes(&graph));
    absl::flat_hash_set<std::string> listed = {""};
    const auto hand_over = [&](const std::string& name) -> absl::Status {
      if (of_rest_.contains(name) || !listed.insert(name).second) return absl::OkStatus();
      const int id = builder_.Find(name);
      if (id < 0) {
        return absl::InvalidArgumentError(absl::StrCat("value '", name, "' is not produced"));
      }
      if (const Tensor* constant = ConstantAt(name)) {
        graph.initializers.emplace(name, *constant);
      } else if (options_.variables.contains(name)) {
        graph.initializers.emplace(name, graph_.initializers.at(name));
      } else {
        graph.inputs.push_back({name, {}});
        plan_.outputs.emplace_back(name, builder_.Plain(id));
      }
      return absl::OkStatus();
    };
    for (const Node& node : graph.nodes) {
      for (const std::string& name : AllInputs(node)) ONWARD_RETURN_IF_ERROR(hand_over(name));
    }
    for (const std::string& name : needed) ONWARD_RETURN_IF_ERROR(hand_over(name));
    for (const auto& [variable, value] : options_.updates) {
      ONWARD_RETURN_IF_ERROR(hand_over(variable));
    }
    rest->graph = std::make_shared<const Graph>(std::move(graph));
    plan_.rest = std::move(rest);
    return absl::OkStatus();
  }

  absl::StatusOr<std::shared_ptr<const Plan>> PlanMemory() {
    const size_t limit = options_.device->memory_limit(), resident = ResidentBytes();
    const size_t room = limit - std::min(limit, resident);
    const Plan unplaced = plan_;
    ShareBuffers(&plan_);
    PlaceValues(&plan_);
    const size_t wanted = plan_.arena_bytes;
    // Placing leaves gaps, so a little less than the room is aimed at.
    for (size_t aim = room; plan_.arena_bytes > room && aim > room / 2; aim -= room / 10) {
      plan_ = unplaced;
      RecomputeToFit(aim, &plan_);
      ShareBuffers(&plan_);
      PlaceValues(&plan_);
    }
    if (plan_.arena_bytes <= room) return builder_.shared();
    return absl::ResourceExhaustedError(absl::StrCat(
        "one run needs ", (wanted + resident) >> 20, " MB of memory, ",
        (plan_.arena_bytes + resident) >> 20, " MB if values are computed again, more than the ",
        limit >> 20, " MB allowed; use a smaller batch"));
  }

  // Variables and constants are there beside the arena.
  size_t ResidentBytes() const {
    size_t bytes = 0;
    for (const PlanValue& v : plan_.values) {
      const bool resident =
          v.storage == PlanValue::Storage::kVariable || v.storage == PlanValue::Storage::kConstant;
      if (resident && v.root == &v - plan_.values.data() && v.shape.has_value()) bytes += v.bytes();
    }
    return bytes;
  }

  Graph graph_;
  const CompileOptions& options_;
  PlanBuilder builder_;
  Plan& plan_;
  std::optional<KnownTypes> known_;
  const OperatorSet* operators_;
  EvaluateContext context_;
  absl::flat_hash_set<std::string> keep_;
  std::optional<PatternGraph> readers_;       // of the graph that is compiled
  std::vector<Node> rest_;                    // nodes that read what only data can tell
  absl::flat_hash_set<std::string> of_rest_;  // what they give
  int next_body_ = 0;
};

}  // namespace

std::vector<std::string> WantedOutputs(const Graph& graph, const CompileOptions& options) {
  if (options.outputs.has_value()) return *options.outputs;
  std::vector<std::string> names;
  for (const NamedType& out : graph.outputs) names.push_back(out.name);
  return names;
}

absl::StatusOr<std::shared_ptr<const Plan>> Compile(const Graph& graph,
                                                    const CompileOptions& options) {
  ONWARD_RETURN_IF_ERROR(options.device->Usable());
  try {
    return Compiler(graph, options).Run();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory while preparing the graph");
  }
}

}  // namespace onward
