// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/plan/plan_builder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/runtime/compile/plan_family.h"

namespace onward {
namespace {

// A constant in another layout, or why it is not.
struct Reordered {
  absl::Status status;
  Tensor tensor;
  Layout from, to;
};

std::string TextOf(const Layout& layout) {
  return layout == nullptr ? "plain" : layout->ToString();
}

}  // namespace

PlanBuilder::PlanBuilder(const CompileOptions& options)
    : options_(options), plan_(std::make_shared<Plan>()) {
  plan_->device = options.device;
  plan_->accelerators = options.accelerators;
  plan_->queues = options.queues;
  plan_->operators = options.operators;
}

int PlanBuilder::NewValue(std::string name, DType dtype, std::optional<Shape> shape) {
  PlanValue v;
  v.name = std::move(name);
  v.dtype = dtype;
  v.shape = std::move(shape);
  v.root = static_cast<int>(plan_->values.size());
  plan_->values.push_back(std::move(v));
  return plan_->values.back().root;
}

int PlanBuilder::Find(const std::string& name) const {
  auto it = ids_.find(name);
  return it == ids_.end() ? -1 : it->second;
}

int PlanBuilder::AddSource(const std::string& name, DType dtype, std::optional<Shape> shape,
                           PlanValue::Storage storage) {
  const int id = NewValue(name, dtype, std::move(shape));
  plan_->values[id].storage = storage;
  ids_[name] = id;
  return id;
}

void PlanBuilder::AddConstant(const std::string& name, Tensor value) {
  const int id = AddSource(name, value.dtype(), value.shape(), PlanValue::Storage::kConstant);
  plan_->values[id].constant = std::move(value);
}

PlanStep& PlanBuilder::AddLate(const Node& node, Kernel kernel,
                               std::shared_ptr<const Control> control,
                               const std::vector<int>& inputs, bool anywhere) {
  PlanStep step;
  step.node = node;
  step.kernel = std::move(kernel);
  step.control = std::move(control);
  step.late = true;
  for (int id : inputs) {
    step.inputs.push_back(id < 0 ? -1 : anywhere ? Plain(id) : OnHost(id));
  }
  for (const std::string& out : step.node.outputs) {
    step.outputs.push_back(
        out.empty() ? -1
                    : AddSource(out, DType::kUndefined, std::nullopt, PlanValue::Storage::kValue));
  }
  plan_->compute.push_back(std::move(step));
  return plan_->compute.back();
}

absl::Status PlanBuilder::AddStep(const Node& node, Kernel kernel, const std::vector<int>& inputs,
                                  const std::vector<ValueSpec>& outputs, int device,
                                  std::string why) {
  const bool known = std::all_of(outputs.begin(), outputs.end(), [](const ValueSpec& o) {
    return !o.present() || o.shape.has_value();
  });
  if (!known) {
    AddLate(node, {}, nullptr, inputs).why = std::move(why);
    return absl::OkStatus();
  }
  if (kernel.is_view && CanView(inputs[0], outputs[0])) {
    const Layout wanted = kernel.input_layouts.empty() ? nullptr : kernel.input_layouts[0];
    ONWARD_ASSIGN_OR_RETURN(const int source, InputAt(inputs[0], device, wanted));
    const int id = NewValue(node.outputs[0], outputs[0].dtype, outputs[0].shape);
    plan_->values[id].device = device;
    if (!kernel.output_layouts.empty()) plan_->values[id].layout = kernel.output_layouts[0];
    plan_->values[id].root = plan_->values[source].root;
    plan_->values[id].storage = plan_->values[source].storage;
    ids_[node.outputs[0]] = id;
    return absl::OkStatus();
  }
  PlanStep step;
  step.node = node;
  step.device = device;
  step.why = std::move(why);
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
    ONWARD_ASSIGN_OR_RETURN(int id, InputAt(inputs[i], device, wanted));
    step.inputs.push_back(id);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    int id = -1;
    if (outputs[i].present()) {
      id = NewValue(node.outputs[i], outputs[i].dtype, outputs[i].shape);
      plan_->values[id].device = device;
      if (i < kernel.output_layouts.size()) plan_->values[id].layout = kernel.output_layouts[i];
      // Strings own memory, so they cannot live in the arena.
      if (outputs[i].dtype == DType::kString) {
        plan_->values[id].storage = PlanValue::Storage::kOwned;
      }
      ids_[node.outputs[i]] = id;
    }
    step.outputs.push_back(id);
  }
  step.kernel = std::move(kernel);
  plan_->compute.push_back(std::move(step));
  return absl::OkStatus();
}

bool PlanBuilder::CanView(int input, const ValueSpec& output) const {
  const PlanValue& in = plan_->values[input];
  return in.dtype == output.dtype && in.storage != PlanValue::Storage::kConstant;
}

absl::StatusOr<int> PlanBuilder::InLayout(int id, const Layout& layout) {
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

absl::Status PlanBuilder::ReorderConstant(const PlanValue& source, const Kernel& kernel,
                                          const Layout& layout, int copy) {
  const auto reorder = [&]() -> Reordered {
    const size_t bytes =
        layout == nullptr ? TensorBytes(source.dtype, *source.shape) : layout->bytes();
    Tensor storage(DType::kUint8, Shape{static_cast<int64_t>(bytes)});
    Tensor result(source.dtype, *source.shape, storage.raw(), std::make_shared<Tensor>(storage));
    Tensor workspace(DType::kUint8, Shape{static_cast<int64_t>(kernel.workspace_bytes)});
    const Tensor* in = &source.constant;
    Tensor* out = &result;
    const absl::Status status = kernel.run({{&in, 1}, {&out, 1}, workspace.raw(), {}});
    return {status, std::move(result), source.layout, layout};
  };
  const Tensor* constant = &source.constant;
  auto made = options_.family == nullptr
                  ? std::make_shared<const Reordered>(reorder())
                  : options_.family->arrangements.Get<Reordered>(
                        {&constant, 1},
                        absl::StrCat(source.shape->ToString(), " from ", TextOf(source.layout),
                                     " to ", TextOf(layout)),
                        reorder);
  // The text of a layout may leave something out.
  if (!SameLayout(made->from, source.layout) || !SameLayout(made->to, layout)) {
    made = std::make_shared<const Reordered>(reorder());
  }
  ONWARD_RETURN_IF_ERROR(made->status);
  plan_->values[copy].storage = PlanValue::Storage::kConstant;
  plan_->values[copy].constant = Held(made->tensor, made);
  return absl::OkStatus();
}

absl::StatusOr<int> PlanBuilder::InputAt(int id, int device, const Layout& layout) {
  if (device == kHost && plan_->values[id].device == kHost) return InLayout(id, layout);
  const int there = At(id, device);
  return device == kHost ? InLayout(there, layout) : there;
}

int PlanBuilder::At(int id, int device) {
  id = Plain(id);
  if (plan_->values[id].device == device) return id;
  for (int other : transferred_[id]) {
    if (plan_->values[other].device == device) return other;
  }
  // Between two accelerators the way is through the host.
  const bool far = plan_->values[id].device != kHost && device != kHost;
  const int copy = Transfer(far ? OnHost(id) : id, device);
  Twin(id, copy);
  return copy;
}

void PlanBuilder::Twin(int id, int other) {
  transferred_[id].push_back(other);
  transferred_[other].push_back(id);
}

int PlanBuilder::Transfer(int id, int device) {
  const PlanValue source = plan_->values[id];
  const int copy = NewValue(source.name, source.dtype, source.shape);
  PlanValue& v = plan_->values[copy];
  v.device = device;
  if (source.storage == PlanValue::Storage::kConstant) {
    v.storage = PlanValue::Storage::kConstant;
    v.constant = source.constant;
    return copy;
  }
  PlanStep step;
  step.node.op_type = "Copy";
  step.node.domain = std::string(kOnwardDomain);
  step.node.outputs = {source.name};
  step.transfer = true;
  step.device = device == kHost ? source.device : device;  // whose stream it is in
  step.inputs = {id};
  step.outputs = {copy};
  plan_->compute.push_back(std::move(step));
  return copy;
}

int PlanBuilder::Plain(int id) {
  auto plain = InLayout(id, nullptr);
  CheckInvariant(plain.ok(), "every layout can be made plain");
  return *plain;
}

int PlanBuilder::Materialize(int id) { return Transfer(id, plan_->values[id].device); }

}  // namespace onward
