// SPDX-License-Identifier: Apache-2.0
// Which device runs a node, and where variables live.
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/runtime/compile/compiler.h"
#include "core/runtime/control/control.h"
#include "core/runtime/devices/islands.h"

namespace onward {
namespace {

// Shapes, axes, counters: what the host works out faster than a launch takes.
constexpr int64_t kFewElements = 64;

bool IsSmallInteger(DType dtype, const Shape& shape) {
  return !IsFloating(dtype) && shape.elements() <= kFewElements;
}

}  // namespace

int Compiler::HomeOf(const Tensor& variable) const {
  const bool here = options_.accelerators.empty() || variable.dtype() == DType::kString ||
                    IsSmallInteger(variable.dtype(), variable.shape());
  return here ? kHost : 1;
}

bool Compiler::IsHostArithmetic(const std::vector<int>& inputs,
                                const std::vector<ValueSpec>& outputs) const {
  return absl::c_all_of(inputs,
                        [&](int id) { return id < 0 || builder_.value(id).device == kHost; }) &&
         absl::c_all_of(outputs, [](const ValueSpec& out) {
           return !out.present() ||
                  (out.shape.has_value() && IsSmallInteger(out.dtype, *out.shape));
         });
}

std::string Compiler::WithoutKernel(const std::vector<Node>& nodes) const {
  for (const Node& node : nodes) {
    const bool plain = node.Is("Constant") || node.Is("Shape") || node.Is("Size");
    const auto has = [&](const Device* device) {
      return device->kernels().Find(node.op_type, node.domain) != nullptr;
    };
    if (plain || absl::c_any_of(options_.accelerators, has)) continue;
    // It is about sequences, which are the host's; its body cannot be asked for without types.
    if (node.Is("SequenceMap")) return node.op_type;
    std::string missing = node.op_type;
    if (IsControl(node)) {
      missing = WithoutKernel(node);
    } else if (auto body = operators_->FunctionBody(
                   node, std::vector<InputFact>(node.inputs.size()), plan_.opsets);
               body.ok() && body->has_value()) {
      missing = WithoutKernel((*body)->body.nodes);
    }
    if (!missing.empty()) return missing;
  }
  return "";
}

std::string Compiler::WithoutKernel(const Node& node) const {
  // Slices of other axes than the first do not lie together.
  for (const char* which : {"scan_input_axes", "scan_output_axes"}) {
    if (absl::c_any_of(node.Ints(which), [](int64_t axis) { return axis != 0; })) {
      return "scans of another axis than the first";
    }
  }
  std::string missing;
  ForEachBody(node, [&](const std::string&, const Graph& body) {
    if (missing.empty()) missing = WithoutKernel(body.nodes);
  });
  return missing;
}

std::vector<int> Compiler::InputsThere(const Node& node, std::vector<int> inputs) {
  for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
    if (inputs[i] < 0) continue;
    const PlanValue& v = builder_.value(inputs[i]);
    if (i < HostInputs(node)) {
      inputs[i] = builder_.OnHost(inputs[i]);
    } else if (v.device == kHost && v.shape.has_value() && v.dtype != DType::kString &&
               !IsSmallInteger(v.dtype, *v.shape)) {
      inputs[i] = builder_.At(inputs[i], 1);
    }
  }
  return inputs;
}

bool Compiler::SuitsAccelerators(const Function& body) const {
  int known = 0;
  for (const Node& node : body.body.nodes) {
    if (IsControl(node)) return false;
    known += absl::c_any_of(options_.accelerators, [&](const Device* device) {
      return device->kernels().Find(node.op_type, node.domain) != nullptr;
    });
  }
  return 2 * known > static_cast<int>(body.body.nodes.size());
}

absl::StatusOr<bool> Compiler::AddOnAccelerator(const Node& node, const std::vector<int>& inputs,
                                                std::vector<ValueSpec> specs,
                                                std::vector<ValueSpec> outputs, std::string* why) {
  if (IsHostArithmetic(inputs, outputs)) {
    *why = kIsHostArithmetic;
    return false;
  }
  if (!node.outputs.empty() && kept_on_host_.contains(node.outputs[0])) {
    *why = kIsIsland;
    return false;
  }
  const bool known = absl::c_all_of(
      outputs, [](const ValueSpec& out) { return !out.present() || out.shape.has_value(); });
  if (!known) {
    *why = "its shape is known at run time only";
    return false;
  }
  for (ValueSpec& spec : specs) spec.layout = nullptr;
  for (int d = 1; d <= static_cast<int>(options_.accelerators.size()); ++d) {
    EvaluateContext there = context_;
    there.device = options_.accelerators[d - 1];
    absl::StatusOr<Kernel> kernel = ChooseKernel({node, specs, outputs, plan_.opsets}, there);
    if (kernel.ok()) {
      ONWARD_RETURN_IF_ERROR(builder_.AddStep(node, *std::move(kernel), inputs, outputs, d));
      return true;
    }
    // What is wrong with a node is the host's to say.
    const bool none = there.device->kernels().Find(node.op_type, node.domain) == nullptr;
    absl::StrAppend(why, why->empty() ? "" : "; ",
                    none ? "no kernel" : std::string(kernel.status().message()));
  }
  return false;
}

}  // namespace onward
