// SPDX-License-Identifier: Apache-2.0
// What becomes of one node while a graph is compiled: a constant, a kernel with its place in the
// plan, the nodes of its body, or a part of the continuation.
#include <algorithm>
#include <deque>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/device/arrangements.h"
#include "core/graph/inline.h"
#include "core/graph/random.h"
#include "core/runtime/compile/behind_data.h"
#include "core/runtime/compile/compiler.h"
#include "core/runtime/compile/unknown_operators.h"
#include "core/runtime/control/control.h"
#include "core/runtime/devices/islands.h"

namespace onward {
namespace {

// Folding a constant must never cost more than it saves.
constexpr size_t kMaxFoldedBytes = size_t{64} << 20;
// Constants that are worth looking for: weights that are turned, not arithmetic of shapes.
constexpr size_t kLeastSharedBytes = size_t{16} << 10;

// Attributes whose text says all of them.
bool HasPlainAttributes(const Node& node) {
  return absl::c_all_of(node.attributes, [](const auto& attribute) {
    const Attribute::Value& value = attribute.second.value;
    return std::holds_alternative<int64_t>(value) ||
           std::holds_alternative<std::vector<int64_t>>(value);
  });
}

}  // namespace

absl::StatusOr<std::vector<ValueType>> Compiler::TypesOf(const Node& node,
                                                         absl::Span<const InputFact> facts) const {
  std::vector<ValueType> types(node.outputs.size());
  for (size_t i = 0; i < types.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    const ValueType* type = graph_.TypeOf(node.outputs[i]);
    if (type == nullptr || !type->is_tensor() || type->dtype == DType::kUndefined ||
        !type->StaticShape().has_value()) {
      return operators_->Infer(node, facts, plan_.opsets);
    }
    types[i] = *type;
  }
  return types;
}

absl::Status Compiler::AddNodes() {
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

absl::Status Compiler::WithOthers(const Node& node, const absl::Status& status) const {
  const bool missing = options_.device->kernels().Find(node.op_type, node.domain) == nullptr;
  if (!missing || status.code() != absl::StatusCode::kUnimplemented) return status;
  const absl::Status all = CheckKernelsExist(graph_, *options_.operators, *options_.device);
  return all.ok() ? status : all;
}

absl::StatusOr<std::vector<Node>> Compiler::AddNode(const Node& node) {
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

bool Compiler::ReadsRest(const Node& node) const {
  const auto reads = [&](const std::string& name) { return of_rest_.contains(name); };
  return !rest_.empty() && absl::c_any_of(AllInputs(node), reads);
}

std::vector<Node> Compiler::Defer(const Node& node) {
  of_rest_.insert(node.outputs.begin(), node.outputs.end());
  rest_.push_back(node);
  return {};
}

absl::StatusOr<std::vector<int>> Compiler::InputsOf(const Node& node,
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

bool Compiler::IsFeed(int id) const {
  return absl::c_any_of(plan_.feeds, [&](const PlanFeed& feed) { return feed.id == id; });
}

const Tensor* Compiler::ConstantAt(const std::string& name) const {
  const int id = builder_.Find(name);
  if (id < 0 || builder_.value(id).storage != PlanValue::Storage::kConstant) return nullptr;
  return builder_.value(id).layout == nullptr ? &builder_.value(id).constant : nullptr;
}

absl::StatusOr<std::vector<Node>> Compiler::AddControl(const Node& node) {
  if (node.Is("If") && node.HasInput(0)) {
    const Tensor* condition = ConstantAt(node.inputs[0]);
    if (condition != nullptr && condition->dtype() == DType::kBool && condition->elements() == 1) {
      return ExpandBranch(node, *condition->data<bool>(), NextPrefix(node), &readers_->names());
    }
  }
  const std::string missing = options_.accelerators.empty() ? "" : WithoutKernel(node);
  const bool there = !options_.accelerators.empty() && missing.empty();
  std::vector<std::string> names;
  ONWARD_ASSIGN_OR_RETURN(
      std::shared_ptr<const Control> control,
      CloseBodies(
          node, options_, there, plan_.opsets,
          [this](const std::string& name) { return ConstantAt(name); }, &names));
  ONWARD_ASSIGN_OR_RETURN(std::vector<int> inputs, InputsOf(node, names));
  if (there) inputs = InputsThere(node, std::move(inputs));
  const Node& closed = control->node;
  PlanStep& step = builder_.AddLate(closed, {}, control, inputs, there);
  step.bodies_there = there;
  if (!missing.empty()) step.why = absl::StrCat("no kernel for ", missing, " in its body");
  return std::vector<Node>();
}

absl::StatusOr<std::vector<Node>> Compiler::AddOnValues(const Node& node,
                                                        const std::vector<int>& inputs) {
  ONWARD_ASSIGN_OR_RETURN(Kernel kernel, ChooseKernel({node, {}, {}, plan_.opsets}, context_));
  PlanStep& step = builder_.AddLate(node, std::move(kernel), nullptr, inputs);
  if (!options_.accelerators.empty()) step.why = "takes or gives what is no tensor";
  return std::vector<Node>();
}

absl::StatusOr<std::vector<Node>> Compiler::AddOnOtherKinds(const Node& node,
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

std::string Compiler::NextPrefix(const Node& node) {
  return absl::StrCat(node.outputs.empty() ? "" : node.outputs[0], "__b", next_body_++, "_");
}

absl::StatusOr<std::vector<Node>> Compiler::AddOnTensors(const Node& node,
                                                         const std::vector<int>& inputs) {
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
  if (all_constant && !IsRandom(node) && SmallEnoughToFold(outputs)) {
    ONWARD_RETURN_IF_ERROR(Fold(node, facts, out_types));
    return std::vector<Node>();
  }
  std::string why;
  const std::string* widened = WhyWidened(node);
  if (widened != nullptr) {
    why = *widened;
  } else if (!options_.accelerators.empty()) {
    ONWARD_ASSIGN_OR_RETURN(const bool added, AddOnAccelerator(node, inputs, specs, outputs, &why));
    if (added) return std::vector<Node>();
    // The nodes of a body may do better. Where there is none, the host's kernel does.
    if (why != kIsHostArithmetic && why != kIsIsland) {
      const absl::StatusOr<std::optional<Function>> body =
          operators_->FunctionBody(node, facts, plan_.opsets);
      if (body.ok() && body->has_value() && SuitsAccelerators(**body)) {
        return ExpandCall(**body, node, NextPrefix(node), &readers_->names());
      }
    }
  }
  std::vector<Node> wide = widener_.Widen({node, specs, outputs, plan_.opsets}, context_,
                                          &readers_->names(), &graph_.types);
  if (!wide.empty()) {
    for (const Node& part : wide) {
      for (const std::string& out : part.outputs) {
        if (!out.empty()) of_widened_.emplace(out, part.Is("Cast") ? kIsIsland : why);
      }
    }
    return wide;
  }
  AddWishes(node, &outputs);
  auto kernel = ChooseKernel({node, specs, outputs, plan_.opsets, context_.arrangements}, context_);
  if (kernel.ok()) {
    ONWARD_RETURN_IF_ERROR(
        builder_.AddStep(node, *std::move(kernel), inputs, outputs, kHost, std::move(why)));
    ReportConstants(inputs);
    return std::vector<Node>();
  }
  if (kernel.status().code() != absl::StatusCode::kNotFound) return kernel.status();
  ONWARD_ASSIGN_OR_RETURN(std::optional<Function> body,
                          operators_->FunctionBody(node, facts, plan_.opsets));
  if (!body.has_value()) return absl::UnimplementedError(kernel.status().message());
  return ExpandCall(*body, node, NextPrefix(node), &readers_->names());
}

const std::string* Compiler::WhyWidened(const Node& node) const {
  for (const std::string& out : node.outputs) {
    if (auto it = of_widened_.find(out); it != of_widened_.end()) return &it->second;
  }
  return nullptr;
}

void Compiler::ReportConstants(const std::vector<int>& inputs) const {
  if (!options_.looked_at) return;
  for (const int id : inputs) {
    const Tensor* constant = id < 0 ? nullptr : &builder_.value(id).constant;
    if (constant != nullptr && constant->defined()) {
      options_.looked_at(constant->raw(), constant->bytes());
    }
  }
}

void Compiler::AddWishes(const Node& node, std::vector<ValueSpec>* outputs) const {
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

bool Compiler::FoldShape(const Node& node, const std::vector<int>& inputs) {
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

bool Compiler::SmallEnoughToFold(const std::vector<ValueSpec>& outputs) {
  size_t bytes = 0;
  for (const ValueSpec& out : outputs) {
    if (out.shape.has_value()) bytes += TensorBytes(out.dtype, *out.shape);
  }
  return bytes <= kMaxFoldedBytes;
}

absl::Status Compiler::Fold(const Node& node, absl::Span<const InputFact> facts,
                            const std::vector<ValueType>& types) {
  if (const Tensor* value = node.Is("Constant") ? node.TensorAttribute("value") : nullptr) {
    builder_.AddConstant(node.outputs[0], *value);
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<Tensor>> out = FoldedBefore(node, facts, types);
  if (!out.ok()) return out.status();
  for (size_t i = 0; i < out->size(); ++i) {
    if (!node.outputs[i].empty()) builder_.AddConstant(node.outputs[i], std::move((*out)[i]));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> Compiler::FoldedBefore(const Node& node,
                                                           absl::Span<const InputFact> facts,
                                                           const std::vector<ValueType>& types) {
  std::vector<const Tensor*> constants;
  size_t bytes = 0;
  for (const InputFact& fact : facts) {
    if (fact.constant == nullptr) continue;
    constants.push_back(fact.constant);
    bytes += fact.constant->bytes();
  }
  const auto fold = [&] {
    absl::StatusOr<std::vector<Tensor>> out = EvaluateNode(node, facts, types, context_);
    for (size_t i = 0; out.ok() && i < out->size(); ++i) plan_.folded_bytes += (*out)[i].bytes();
    return out;
  };
  for (const ValueType& type : types) {
    const std::optional<Shape> shape = type.is_tensor() ? type.StaticShape() : std::nullopt;
    if (shape.has_value()) bytes += TensorBytes(type.dtype, *shape);
  }
  if (arrangements_ == nullptr || bytes < kLeastSharedBytes || !HasPlainAttributes(node)) {
    return fold();
  }
  Node form = node;
  form.outputs.clear();
  for (std::string& in : form.inputs) in = in.empty() ? "" : "_";
  const auto folded =
      arrangements_->Get<absl::StatusOr<std::vector<Tensor>>>(constants, ToText(form), fold);
  if (!folded->ok()) return *folded;
  std::vector<Tensor> out;
  for (const Tensor& t : **folded) out.push_back(Held(t, folded));
  return out;
}

}  // namespace onward
