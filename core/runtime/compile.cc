// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/compile.h"

#include <algorithm>
#include <deque>
#include <new>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "core/graph/infer.h"
#include "core/graph/inline.h"
#include "core/graph/patterns/pattern.h"
#include "core/graph/random.h"
#include "core/graph/verify.h"
#include "core/runtime/commit.h"
#include "core/runtime/evaluate.h"
#include "core/runtime/fuse.h"
#include "core/runtime/merge_updates.h"
#include "core/runtime/place.h"
#include "core/runtime/pointwise.h"
#include "core/runtime/recompute.h"
#include "core/runtime/unknown_operators.h"

namespace onward {
namespace {

// Folding a constant must never cost more than it saves.
constexpr size_t kMaxFoldedBytes = size_t{64} << 20;

class Compiler {
 public:
  Compiler(const Graph& graph, const CompileOptions& options)
      : graph_(graph), options_(options), plan_(std::make_shared<Plan>()) {
    plan_->device = options.device;
    plan_->operators = options.operators;
    plan_->opsets = graph.opsets;
    context_ = {options.device, options.operators, &plan_->opsets, {}};
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
    Prune(&graph_, needed);
    ONWARD_RETURN_IF_ERROR(CheckOperatorsKnown(graph_, *options_.operators, *options_.device));
    ONWARD_RETURN_IF_ERROR(InferConcreteTypes());
    FuseFollowers(keep_, &graph_);
    FuseBatchNormalization(keep_, &graph_);
    if (options_.device->kernels().Find("MaxPoolWinners", kOnwardDomain) != nullptr) {
      KeepWinnersOfPools(keep_, &graph_);
    }
    UpdateRowsOnly(keep_, *options_.operators, &graph_);
    JoinPads(keep_, &graph_);
    Prune(&graph_, needed);
    readers_.emplace(&graph_, keep_);
    ONWARD_RETURN_IF_ERROR(AddSources(needed));
    ONWARD_RETURN_IF_ERROR(AddNodes());
    ONWARD_RETURN_IF_ERROR(AddOutputs(wanted));
    ONWARD_RETURN_IF_ERROR(PlanCommit(options_.updates, ids_, plan_.get(),
                                      [this](int id) { return Materialize(id); }));
    MergeUpdates(context_, plan_.get());
    FusePointwise(plan_.get());
    return PlanMemory();
  }

 private:
  int NewValue(std::string name, DType dtype, std::optional<Shape> shape) {
    PlanValue v;
    v.name = std::move(name);
    v.dtype = dtype;
    v.shape = std::move(shape);
    v.root = static_cast<int>(plan_->values.size());
    plan_->values.push_back(std::move(v));
    return plan_->values.back().root;
  }

  // Types for the rewrites that follow, which see no node that breaks a demand of its
  // operator. Other errors wait until the node itself is compiled.
  absl::Status InferConcreteTypes() {
    for (NamedType& in : graph_.inputs) {
      auto it = options_.feeds.find(in.name);
      if (it != options_.feeds.end()) in.type = ValueType::Of(it->second.dtype, it->second.shape);
    }
    graph_.types.clear();
    return InferKnownTypes(&graph_, *options_.operators);
  }

  absl::Status AddSources(const std::vector<std::string>& needed) {
    for (const auto& [name, tensor] : graph_.initializers) {
      const int id = NewValue(name, tensor.dtype(), tensor.shape());
      const bool variable = options_.variables.contains(name);
      plan_->values[id].storage =
          variable ? PlanValue::Storage::kVariable : PlanValue::Storage::kConstant;
      if (variable) {
        plan_->variables.emplace_back(name, id);
      } else {
        plan_->values[id].constant = tensor;
      }
      ids_[name] = id;
    }
    absl::flat_hash_set<std::string> read(needed.begin(), needed.end());
    for (const Node& node : graph_.nodes) {
      for (std::string& v : AllInputs(node)) read.insert(std::move(v));
    }
    for (const NamedType& in : graph_.inputs) {
      if (ids_.contains(in.name) || !read.contains(in.name)) continue;
      auto it = options_.feeds.find(in.name);
      if (it == options_.feeds.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("input '", in.name, "' (", in.type.ToString(), ") is not given"));
      }
      const int id = NewValue(in.name, it->second.dtype, it->second.shape);
      plan_->values[id].storage = PlanValue::Storage::kFeed;
      plan_->feeds.emplace_back(in.name, id);
      ids_[in.name] = id;
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
      ONWARD_ASSIGN_OR_RETURN(std::vector<Node> body, AddNode(node));
      work.insert(work.begin(), std::make_move_iterator(body.begin()),
                  std::make_move_iterator(body.end()));
    }
    return absl::OkStatus();
  }

  // Adds one node; a non-empty result replaces it instead.
  absl::StatusOr<std::vector<Node>> AddNode(const Node& node) {
    std::vector<int> inputs(node.inputs.size(), -1);
    bool all_constant = true, any_dynamic = false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (node.inputs[i].empty()) continue;
      auto it = ids_.find(node.inputs[i]);
      if (it == ids_.end())
        return NodeError(node,
                         absl::StrCat("reads '", node.inputs[i], "', which nothing produces"));
      inputs[i] = it->second;
      const PlanValue& v = plan_->values[inputs[i]];
      all_constant &= v.storage == PlanValue::Storage::kConstant;
      any_dynamic |= v.storage == PlanValue::Storage::kDynamic;
    }
    if (any_dynamic) {
      AddDynamic(node, inputs, {});
      return std::vector<Node>();
    }
    std::vector<ValueType> types(inputs.size());
    std::vector<InputFact> facts(inputs.size());
    std::vector<ValueSpec> specs(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] < 0) continue;
      const PlanValue& v = plan_->values[inputs[i]];
      types[i] = ValueType::Of(v.dtype, *v.shape);
      const bool constant = v.storage == PlanValue::Storage::kConstant && v.layout == nullptr;
      facts[i] = {&types[i], constant ? &v.constant : nullptr};
      specs[i] = {v.dtype, v.shape, v.layout, constant ? &v.constant : nullptr};
    }
    ONWARD_ASSIGN_OR_RETURN(std::vector<ValueType> out_types,
                            options_.operators->Infer(node, facts, plan_->opsets));
    if (FoldShape(node, inputs)) return std::vector<Node>();
    ONWARD_ASSIGN_OR_RETURN(std::vector<ValueSpec> outputs, OutputSpecs(node, out_types, context_));
    AddWishes(node, &outputs);
    if (all_constant && !IsRandom(node) && SmallEnoughToFold(outputs)) {
      ONWARD_RETURN_IF_ERROR(Fold(node, inputs));
      return std::vector<Node>();
    }
    auto kernel = ChooseKernel({node, specs, outputs, plan_->opsets}, context_);
    if (kernel.ok()) {
      ONWARD_RETURN_IF_ERROR(AddStep(node, *std::move(kernel), inputs, outputs));
      return std::vector<Node>();
    }
    if (kernel.status().code() != absl::StatusCode::kNotFound) return kernel.status();
    ONWARD_ASSIGN_OR_RETURN(std::optional<Function> body,
                            options_.operators->FunctionBody(node, facts, plan_->opsets));
    if (!body.has_value()) return absl::UnimplementedError(kernel.status().message());
    const std::string prefix =
        absl::StrCat(node.outputs.empty() ? "" : node.outputs[0], "__b", next_body_++, "_");
    return ExpandCall(*body, node, prefix, &readers_->names());
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
      out.layout = plan_->device->LayoutForTranspose(out.dtype, *out.shape, perm);
    }
  }

  // Shape and Size of a known shape are constants whatever their input holds.
  bool FoldShape(const Node& node, const std::vector<int>& inputs) {
    if (!node.Is("Shape") && !node.Is("Size")) return false;
    const Shape& shape = *plan_->values[inputs[0]].shape;
    if (node.Is("Size")) {
      AddConstant(node.outputs[0], Tensor::Scalar<int64_t>(shape.elements()));
      return true;
    }
    const int64_t rank = shape.rank();
    auto clamp = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
    const int64_t start = clamp(node.Int("start", 0));
    const int64_t end = std::max(start, clamp(node.Int("end", rank)));
    AddConstant(node.outputs[0], Tensor::FromValues<int64_t>(
                                     Shape{end - start}, shape.dims().subspan(start, end - start)));
    return true;
  }

  static bool SmallEnoughToFold(const std::vector<ValueSpec>& outputs) {
    size_t bytes = 0;
    for (const ValueSpec& out : outputs) {
      if (out.shape.has_value()) bytes += TensorBytes(out.dtype, *out.shape);
    }
    return bytes <= kMaxFoldedBytes;
  }

  absl::Status Fold(const Node& node, const std::vector<int>& inputs) {
    std::vector<Tensor> in(inputs.size());
    for (size_t i = 0; i < in.size(); ++i) {
      if (inputs[i] >= 0) in[i] = plan_->values[inputs[i]].constant;
    }
    ONWARD_ASSIGN_OR_RETURN(std::vector<Tensor> out, EvaluateNode(node, in, context_));
    for (size_t i = 0; i < out.size(); ++i) {
      if (!node.outputs[i].empty()) AddConstant(node.outputs[i], std::move(out[i]));
    }
    return absl::OkStatus();
  }

  void AddConstant(const std::string& name, Tensor value) {
    const int id = NewValue(name, value.dtype(), value.shape());
    plan_->values[id].storage = PlanValue::Storage::kConstant;
    plan_->values[id].constant = std::move(value);
    ids_[name] = id;
  }

  void AddDynamic(const Node& node, const std::vector<int>& inputs, Kernel kernel) {
    PlanStep step;
    step.node = node;
    step.kernel = std::move(kernel);
    step.dynamic = true;
    for (int id : inputs) step.inputs.push_back(id < 0 ? -1 : Plain(id));
    for (const std::string& out : node.outputs) {
      int id = -1;
      if (!out.empty()) {
        id = NewValue(out, DType::kUndefined, std::nullopt);
        plan_->values[id].storage = PlanValue::Storage::kDynamic;
        ids_[out] = id;
      }
      step.outputs.push_back(id);
    }
    plan_->compute.push_back(std::move(step));
  }

  absl::Status AddStep(const Node& node, Kernel kernel, std::vector<int> inputs,
                       const std::vector<ValueSpec>& outputs) {
    // Strings own memory, so they cannot live in the arena.
    const bool known = std::all_of(outputs.begin(), outputs.end(), [](const ValueSpec& o) {
      return !o.present() || (o.shape.has_value() && o.dtype != DType::kString);
    });
    if (!known) {
      AddDynamic(node, inputs, {});
      return absl::OkStatus();
    }
    if (kernel.is_view && CanView(inputs[0], outputs[0])) {
      const Layout wanted = kernel.input_layouts.empty() ? nullptr : kernel.input_layouts[0];
      ONWARD_ASSIGN_OR_RETURN(const int source, InLayout(inputs[0], wanted));
      const int id = NewValue(node.outputs[0], outputs[0].dtype, outputs[0].shape);
      if (!kernel.output_layouts.empty()) plan_->values[id].layout = kernel.output_layouts[0];
      plan_->values[id].root = plan_->values[source].root;
      plan_->values[id].storage = plan_->values[source].storage;
      ids_[node.outputs[0]] = id;
      return absl::OkStatus();
    }
    PlanStep step;
    step.node = node;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] < 0) {
        step.inputs.push_back(-1);
        continue;
      }
      const Layout wanted = i < kernel.input_layouts.size() ? kernel.input_layouts[i] : nullptr;
      // A value used for its shape alone needs no reordering.
      if (options_.operators->ShapeOnly(node, static_cast<int>(i))) {
        step.inputs.push_back(inputs[i]);
        continue;
      }
      ONWARD_ASSIGN_OR_RETURN(int id, InLayout(inputs[i], wanted));
      step.inputs.push_back(id);
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      int id = -1;
      if (outputs[i].present()) {
        id = NewValue(node.outputs[i], outputs[i].dtype, outputs[i].shape);
        if (i < kernel.output_layouts.size()) plan_->values[id].layout = kernel.output_layouts[i];
        ids_[node.outputs[i]] = id;
      }
      step.outputs.push_back(id);
    }
    step.kernel = std::move(kernel);
    plan_->compute.push_back(std::move(step));
    return absl::OkStatus();
  }

  bool CanView(int input, const ValueSpec& output) const {
    const PlanValue& in = plan_->values[input];
    return in.dtype == output.dtype && in.storage != PlanValue::Storage::kConstant;
  }

  // The same value in another layout: a reorder step, made once per layout.
  absl::StatusOr<int> InLayout(int id, const Layout& layout) {
    if (SameLayout(plan_->values[id].layout, layout)) return id;
    for (int other : reordered_[id]) {
      if (SameLayout(plan_->values[other].layout, layout)) return other;
    }
    const PlanValue source = plan_->values[id];
    ONWARD_ASSIGN_OR_RETURN(Kernel kernel, options_.device->MakeReorder(source.dtype, *source.shape,
                                                                        source.layout, layout));
    const int copy = NewValue(source.name, source.dtype, source.shape);
    plan_->values[copy].layout = layout;
    reordered_[id].push_back(copy);
    reordered_[copy].push_back(id);
    if (source.storage == PlanValue::Storage::kConstant) {
      ONWARD_RETURN_IF_ERROR(ReorderConstant(source, kernel, layout, copy));
      return copy;
    }
    PlanStep step;
    step.node.op_type = "Reorder";
    step.node.domain = std::string(kOnwardDomain);
    step.node.outputs = {source.name};
    step.kernel = std::move(kernel);
    step.inputs = {id};
    step.outputs = {copy};
    plan_->compute.push_back(std::move(step));
    ++plan_->reorders;
    return copy;
  }

  absl::Status ReorderConstant(const PlanValue& source, const Kernel& kernel, const Layout& layout,
                               int copy) {
    const size_t bytes =
        layout == nullptr ? TensorBytes(source.dtype, *source.shape) : layout->bytes();
    Tensor storage(DType::kUint8, Shape{static_cast<int64_t>(bytes)});
    Tensor result(source.dtype, *source.shape, storage.raw(), std::make_shared<Tensor>(storage));
    Tensor workspace(DType::kUint8, Shape{static_cast<int64_t>(kernel.workspace_bytes)});
    const Tensor* in = &source.constant;
    Tensor* out = &result;
    ONWARD_RETURN_IF_ERROR(kernel.run({{&in, 1}, {&out, 1}, workspace.raw(), {}}));
    plan_->values[copy].storage = PlanValue::Storage::kConstant;
    plan_->values[copy].constant = std::move(result);
    return absl::OkStatus();
  }

  int Plain(int id) {
    auto plain = InLayout(id, nullptr);
    CheckInvariant(plain.ok(), "every layout can be made plain");
    return *plain;
  }

  // A copy of a value in memory of its own.
  int Materialize(int id) {
    const PlanValue source = plan_->values[id];
    const int copy = NewValue(source.name, source.dtype, source.shape);
    PlanStep step;
    step.node.op_type = "Copy";
    step.node.domain = std::string(kOnwardDomain);
    step.node.outputs = {source.name};
    step.kernel.run = [](const KernelCall& call) {
      std::memcpy(call.outputs[0]->raw(), call.inputs[0]->raw(), call.inputs[0]->bytes());
      return absl::OkStatus();
    };
    step.inputs = {id};
    step.outputs = {copy};
    plan_->compute.push_back(std::move(step));
    return copy;
  }

  absl::Status AddOutputs(const std::vector<std::string>& wanted) {
    auto place = [&](const std::string& name) -> absl::StatusOr<int> {
      auto it = ids_.find(name);
      if (it == ids_.end())
        return absl::InvalidArgumentError(absl::StrCat("output '", name, "' is not produced"));
      const int id = plan_->values[it->second].storage == PlanValue::Storage::kDynamic
                         ? it->second
                         : Plain(it->second);
      it->second = id;
      return id;
    };
    for (const std::string& name : wanted) {
      ONWARD_ASSIGN_OR_RETURN(int id, place(name));
      plan_->outputs.emplace_back(name, id);
    }
    for (const std::string& name : options_.finite) {
      ONWARD_ASSIGN_OR_RETURN(int id, place(name));
      plan_->finite.push_back(id);
    }
    for (const auto& [variable, value] : options_.updates)
      ONWARD_RETURN_IF_ERROR(place(value).status());
    return absl::OkStatus();
  }

  absl::StatusOr<std::shared_ptr<const Plan>> PlanMemory() {
    const size_t limit = options_.device->memory_limit(), resident = ResidentBytes();
    const size_t room = limit - std::min(limit, resident);
    const Plan unplaced = *plan_;
    ShareBuffers(plan_.get());
    PlaceValues(plan_.get());
    const size_t wanted = plan_->arena_bytes;
    // Placing leaves gaps, so a little less than the room is aimed at.
    for (size_t aim = room; plan_->arena_bytes > room && aim > room / 2; aim -= room / 10) {
      *plan_ = unplaced;
      RecomputeToFit(aim, plan_.get());
      ShareBuffers(plan_.get());
      PlaceValues(plan_.get());
    }
    if (plan_->arena_bytes <= room) return plan_;
    return absl::ResourceExhaustedError(absl::StrCat(
        "one run needs ", (wanted + resident) >> 20, " MB of memory, ",
        (plan_->arena_bytes + resident) >> 20, " MB if values are computed again, more than the ",
        limit >> 20, " MB allowed; use a smaller batch"));
  }

  // Variables and constants are there beside the arena.
  size_t ResidentBytes() const {
    size_t bytes = 0;
    for (const PlanValue& v : plan_->values) {
      const bool resident =
          v.storage == PlanValue::Storage::kVariable || v.storage == PlanValue::Storage::kConstant;
      if (resident && v.root == &v - plan_->values.data() && v.shape.has_value())
        bytes += v.bytes();
    }
    return bytes;
  }

  Graph graph_;
  const CompileOptions& options_;
  std::shared_ptr<Plan> plan_;
  EvaluateContext context_;
  absl::flat_hash_map<std::string, int> ids_;
  absl::flat_hash_set<std::string> keep_;
  std::optional<PatternGraph> readers_;  // of the graph that is compiled
  absl::flat_hash_map<int, std::vector<int>> reordered_;
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

std::string Plan::ToText() const {
  std::string text;
  auto names = [&](const std::vector<int>& ids) {
    return absl::StrJoin(ids, ", ", [&](std::string* out, int id) {
      if (id < 0) return;
      const PlanValue& v = values[id];
      absl::StrAppend(out, v.name, v.layout == nullptr ? "" : ":" + v.layout->ToString());
    });
  };
  auto print = [&](const std::vector<PlanStep>& steps) {
    for (const PlanStep& s : steps) {
      absl::StrAppend(&text, "  ", names(s.outputs), " = ", s.node.op_type, "(", names(s.inputs),
                      ")", s.dynamic ? "  # shape known at run time" : "", "\n");
    }
  };
  absl::StrAppend(&text, "compute:\n");
  print(compute);
  absl::StrAppend(&text, "commit:\n");
  print(commit);
  for (const PlanCopy& c : copies)
    absl::StrAppend(&text, "  ", c.variable, " <- ", values[c.from].name, "\n");
  absl::StrAppend(&text, "arena ", arena_bytes, " bytes, ", reorders, " reorders\n");
  return text;
}

}  // namespace onward
