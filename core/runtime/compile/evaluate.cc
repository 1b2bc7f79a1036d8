// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/compile/evaluate.h"

#include <new>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/base/size_text.h"
#include "core/base/status.h"
#include "core/graph/inline.h"

namespace onward {
namespace {

absl::StatusOr<Tensor> Reordered(const Tensor& plain, const Layout& to,
                                 const EvaluateContext& context, bool backwards,
                                 const Shape& shape) {
  ONWARD_ASSIGN_OR_RETURN(
      Kernel kernel, context.device->MakeReorder(plain.dtype(), shape, backwards ? to : nullptr,
                                                 backwards ? nullptr : to));
  const size_t bytes = backwards ? TensorBytes(plain.dtype(), shape) : to->bytes();
  Tensor storage(DType::kUint8, Shape{static_cast<int64_t>(bytes)});
  Tensor result(plain.dtype(), shape, storage.raw(), std::make_shared<Tensor>(storage));
  Tensor workspace(DType::kUint8, Shape{static_cast<int64_t>(kernel.workspace_bytes)});
  const Tensor* in = &plain;
  Tensor* out = &result;
  ONWARD_RETURN_IF_ERROR(kernel.run({{&in, 1}, {&out, 1}, workspace.raw(), {}}));
  return result;
}

absl::StatusOr<std::vector<Tensor>> EvaluateBody(const Function& function, const Node& call,
                                                 absl::Span<const InputFact> inputs,
                                                 const EvaluateContext& context) {
  NameScope names;
  names.ReserveAll(call.inputs);
  names.ReserveAll(call.outputs);
  ONWARD_ASSIGN_OR_RETURN(std::vector<Node> nodes, ExpandCall(function, call, "b_", &names));
  absl::flat_hash_map<std::string, Tensor> values;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (inputs[i].constant != nullptr) values[call.inputs[i]] = *inputs[i].constant;
  }
  for (const Node& node : nodes) {
    std::vector<ValueType> types(node.inputs.size());
    std::vector<InputFact> facts(node.inputs.size());
    for (size_t i = 0; i < facts.size(); ++i) {
      auto value = values.find(node.inputs[i]);
      if (value == values.end() || !value->second.defined()) continue;
      types[i] = ValueType::Of(value->second.dtype(), value->second.shape());
      facts[i] = {&types[i], &value->second};
    }
    ONWARD_ASSIGN_OR_RETURN(const std::vector<ValueType> out_types,
                            context.operators->Infer(node, facts, *context.opsets));
    ONWARD_ASSIGN_OR_RETURN(std::vector<Tensor> out, EvaluateNode(node, facts, out_types, context));
    for (size_t i = 0; i < out.size(); ++i) {
      if (!node.outputs[i].empty()) values[node.outputs[i]] = std::move(out[i]);
    }
  }
  std::vector<Tensor> results;
  for (const std::string& out : call.outputs)
    results.push_back(out.empty() ? Tensor() : values[out]);
  return results;
}

absl::StatusOr<PreparedNode> PrepareTyped(const Node& node, absl::Span<const ValueSpec> inputs,
                                          const std::vector<ValueType>& types,
                                          const EvaluateContext& context) {
  PreparedNode prepared;
  ONWARD_ASSIGN_OR_RETURN(prepared.outputs, OutputSpecs(node, types, context));
  ONWARD_ASSIGN_OR_RETURN(prepared.kernel, ChooseKernel({node, inputs, prepared.outputs,
                                                         *context.opsets, context.arrangements},
                                                        context));
  return prepared;
}

}  // namespace

absl::StatusOr<Kernel> ChooseKernel(const KernelRequest& request, const EvaluateContext& context) {
  const auto* entries = context.device->kernels().Find(request.node.op_type, request.node.domain);
  std::string reasons;
  if (entries != nullptr) {
    for (const KernelTable::Entry& entry : *entries) {
      auto kernel = entry.factory(request);
      if (kernel.ok() || kernel.status().code() != absl::StatusCode::kUnimplemented) return kernel;
      absl::StrAppend(&reasons, reasons.empty() ? "" : "; ", entry.provider, ": ",
                      kernel.status().message());
    }
  }
  return absl::NotFoundError(entries == nullptr ? absl::StrCat(request.node.Describe(),
                                                               ": device '", context.device->name(),
                                                               "' has no kernel for this operator")
                                                : reasons);
}

absl::StatusOr<std::vector<ValueSpec>> OutputSpecs(const Node& node,
                                                   const std::vector<ValueType>& types,
                                                   const EvaluateContext& context) {
  std::vector<ValueSpec> specs(node.outputs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    const ValueType& type = types[i];
    if (!type.is_tensor()) {
      return NodeUnimplemented(
          node, absl::StrCat("gives ", type.ToString(), "; only tensors are supported"));
    }
    specs[i].dtype = type.dtype;
    specs[i].shape = type.StaticShape();
    if (!specs[i].shape.has_value()) continue;
    auto elements = CheckedElements(specs[i].shape->dims());
    if (!elements.ok()) return NodeError(node, std::string(elements.status().message()));
    if (TensorBytes(type.dtype, *specs[i].shape) > context.device->memory_limit()) {
      return absl::ResourceExhaustedError(absl::StrCat(
          node.Describe(), ": its output ", type.ToString(), " does not fit into memory (",
          SizeText(static_cast<int64_t>(context.device->memory_limit())), " allowed)"));
    }
  }
  return specs;
}

absl::StatusOr<PreparedNode> PrepareNode(const Node& node, absl::Span<const Tensor* const> inputs,
                                         absl::Span<const Tensor* const> constants,
                                         const EvaluateContext& context) {
  std::vector<ValueType> types(inputs.size());
  std::vector<InputFact> facts(inputs.size());
  std::vector<ValueSpec> specs(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) continue;
    types[i] = ValueType::Of(inputs[i]->dtype(), inputs[i]->shape());
    facts[i] = {&types[i], constants[i]};
    specs[i] = {inputs[i]->dtype(), inputs[i]->shape(), nullptr, constants[i]};
  }
  ONWARD_ASSIGN_OR_RETURN(const std::vector<ValueType> out_types,
                          context.operators->Infer(node, facts, *context.opsets));
  return PrepareTyped(node, specs, out_types, context);
}

absl::StatusOr<std::vector<Tensor>> RunPrepared(const PreparedNode& prepared,
                                                absl::Span<const Tensor* const> inputs,
                                                const EvaluateContext& context) {
  const Kernel& kernel = prepared.kernel;
  const std::vector<ValueSpec>& outputs = prepared.outputs;
  std::vector<Tensor> reordered(inputs.size());
  std::vector<const Tensor*> in(inputs.begin(), inputs.end());
  for (size_t i = 0; i < in.size() && i < kernel.input_layouts.size(); ++i) {
    if (kernel.input_layouts[i] == nullptr || in[i] == nullptr) continue;
    ONWARD_ASSIGN_OR_RETURN(
        reordered[i], Reordered(*in[i], kernel.input_layouts[i], context, false, in[i]->shape()));
    in[i] = &reordered[i];
  }
  std::vector<Tensor> out(outputs.size());
  std::vector<Tensor*> out_pointers(out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (!outputs[i].present()) continue;
    out_pointers[i] = &out[i];
    if (!outputs[i].shape.has_value()) continue;
    const bool opaque = i < kernel.output_layouts.size() && kernel.output_layouts[i] != nullptr;
    if (opaque) {
      Tensor storage(DType::kUint8, Shape{static_cast<int64_t>(kernel.output_layouts[i]->bytes())});
      out[i] = Tensor(outputs[i].dtype, *outputs[i].shape, storage.raw(),
                      std::make_shared<Tensor>(storage));
    } else {
      out[i] = Tensor(outputs[i].dtype, *outputs[i].shape);
    }
  }
  Tensor workspace(DType::kUint8, Shape{static_cast<int64_t>(kernel.workspace_bytes)});
  ONWARD_RETURN_IF_ERROR(kernel.run({in, out_pointers, workspace.raw(), context.random}));
  for (size_t i = 0; i < out.size() && i < kernel.output_layouts.size(); ++i) {
    if (kernel.output_layouts[i] == nullptr || !out[i].defined()) continue;
    ONWARD_ASSIGN_OR_RETURN(
        out[i], Reordered(out[i], kernel.output_layouts[i], context, true, out[i].shape()));
  }
  return out;
}

absl::StatusOr<std::vector<Tensor>> EvaluateNode(const Node& node,
                                                 absl::Span<const InputFact> constants,
                                                 const std::vector<ValueType>& types,
                                                 const EvaluateContext& context) {
  std::vector<const Tensor*> inputs(constants.size(), nullptr);
  std::vector<ValueSpec> specs(constants.size());
  for (size_t i = 0; i < constants.size(); ++i) {
    inputs[i] = constants[i].constant;
    if (inputs[i] != nullptr) {
      specs[i] = {inputs[i]->dtype(), inputs[i]->shape(), nullptr, inputs[i]};
    }
  }
  try {
    const absl::StatusOr<PreparedNode> prepared = PrepareTyped(node, specs, types, context);
    if (prepared.ok()) return RunPrepared(*prepared, inputs, context);
    if (prepared.status().code() != absl::StatusCode::kNotFound) return prepared.status();
    ONWARD_ASSIGN_OR_RETURN(const std::optional<Function> body,
                            context.operators->FunctionBody(node, constants, *context.opsets));
    if (!body.has_value()) return absl::UnimplementedError(prepared.status().message());
    return EvaluateBody(*body, node, constants, context);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat(node.Describe(), ": out of memory"));
  }
}

}  // namespace onward
