// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/adapt.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

constexpr int64_t kConvertGrain = 16384;

void ToFloat(const Tensor& from, float* to) {
  DispatchFloating(from.dtype(), [&]<typename T>() {
    const T* x = from.data<T>();
    ParallelFor(from.elements(), kConvertGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = static_cast<float>(x[i]);
    });
  });
}

void FromFloat(const float* from, Tensor& to) {
  DispatchFloating(to.dtype(), [&]<typename T>() {
    T* y = to.data<T>();
    ParallelFor(to.elements(), kConvertGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = T(from[i]);
    });
  });
}

// Where a 16-bit value lives as float in the workspace.
struct Converted {
  int index;
  size_t offset;
};

struct FloatKernel {
  Kernel inner;
  std::vector<Converted> inputs, outputs;
  std::vector<bool> read;  // per entry of `inputs`

  absl::Status Run(const KernelCall& call) const {
    absl::InlinedVector<Tensor, 8> views;
    views.reserve(inputs.size() + outputs.size());
    absl::InlinedVector<const Tensor*, 8> in(call.inputs.begin(), call.inputs.end());
    absl::InlinedVector<Tensor*, 8> out(call.outputs.begin(), call.outputs.end());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Tensor& given = *call.inputs[inputs[i].index];
      float* at = At<float>(call.workspace, inputs[i].offset);
      if (read[i]) ToFloat(given, at);
      in[inputs[i].index] = &views.emplace_back(DType::kFloat, given.shape(), at, nullptr);
    }
    for (const Converted& c : outputs) {
      float* at = At<float>(call.workspace, c.offset);
      out[c.index] =
          &views.emplace_back(DType::kFloat, call.outputs[c.index]->shape(), at, nullptr);
    }
    ONWARD_RETURN_IF_ERROR(inner.run({in, absl::MakeConstSpan(out), call.workspace, call.random}));
    for (const Converted& c : outputs) {
      FromFloat(out[c.index]->data<float>(), *call.outputs[c.index]);
    }
    return absl::OkStatus();
  }
};

// Replaces 16-bit types by float and drops layouts.
std::vector<ValueSpec> FloatSpecs(absl::Span<const ValueSpec> specs) {
  std::vector<ValueSpec> out(specs.begin(), specs.end());
  for (ValueSpec& spec : out) {
    spec.layout = nullptr;
    if (!IsHalf(spec.dtype)) continue;
    spec.dtype = DType::kFloat;
    spec.constant = nullptr;
  }
  return out;
}

// Puts conversions around a kernel made for float.
Kernel ThroughFloat(Kernel inner, const AdaptOptions& options, const KernelRequest& r) {
  WorkspacePlan plan;
  plan.Add(inner.workspace_bytes);
  auto state = std::make_shared<FloatKernel>();
  Kernel kernel;
  kernel.in_place = inner.in_place;
  kernel.infallible = inner.infallible;
  for (int i = 0; i < static_cast<int>(r.inputs.size()); ++i) {
    if (!IsHalf(r.inputs[i].dtype)) continue;
    const auto& skipped = options.shape_only;
    const bool read = std::find(skipped.begin(), skipped.end(), i) == skipped.end();
    state->inputs.push_back({i, read ? plan.Add(r.in(i).elements() * sizeof(float)) : 0});
    state->read.push_back(read);
  }
  for (int i = 0; i < static_cast<int>(r.outputs.size()); ++i) {
    if (!IsHalf(r.outputs[i].dtype)) continue;
    state->outputs.push_back({i, plan.Add(r.out(i).elements() * sizeof(float))});
  }
  state->inner = std::move(inner);
  kernel.workspace_bytes = plan.bytes();
  kernel.run = [state = std::move(state)](const KernelCall& call) { return state->Run(call); };
  return kernel;
}

// Builds the kernel of a request whose inputs all have shapes; fills in and
// checks the shapes of the outputs.
absl::StatusOr<Kernel> MakeShaped(const KernelFactory& factory, const ShapeRule& rule,
                                  const AdaptOptions& options, const Node& node,
                                  absl::Span<const ValueSpec> inputs,
                                  std::vector<ValueSpec>& outputs,
                                  const std::map<std::string, int>& opsets,
                                  Arrangements* arrangements = nullptr) {
  const KernelRequest request{node, inputs, outputs, opsets, arrangements};
  bool narrow = false;
  for (const ValueSpec& v : inputs) narrow |= IsHalf(v.dtype);
  for (const ValueSpec& v : outputs) narrow |= IsHalf(v.dtype);
  const std::vector<ValueSpec> float_in = narrow ? FloatSpecs(inputs) : std::vector<ValueSpec>(),
                               float_out = narrow ? FloatSpecs(outputs) : std::vector<ValueSpec>();
  const KernelRequest wide{node, float_in, float_out, opsets, arrangements};
  const KernelRequest& accepted = narrow ? wide : request;
  absl::StatusOr<Kernel> kernel = factory(accepted);
  if (!kernel.ok()) return kernel;
  for (int i = 0; i < static_cast<int>(outputs.size()); ++i) {
    if (!outputs[i].present()) continue;
    ONWARD_ASSIGN_OR_RETURN(const Shape expected, rule(accepted, i));
    if (outputs[i].shape.has_value() && *outputs[i].shape != expected) {
      return NodeError(
          node, absl::StrCat("output ", i, " is declared with shape ", outputs[i].shape->ToString(),
                             ", its inputs give ", expected.ToString()));
    }
    outputs[i].shape = expected;
  }
  if (narrow) return ThroughFloat(*std::move(kernel), options, request);
  return kernel;
}

// A kernel whose shapes are known only at run time.
struct LateKernel {
  KernelFactory factory;
  ShapeRule rule;
  AdaptOptions options;
  Node node;
  std::vector<ValueSpec> inputs, outputs;
  std::map<std::string, int> opsets;

  absl::Status Run(const KernelCall& call) const {
    std::vector<ValueSpec> in = inputs, out = outputs;
    for (size_t i = 0; i < in.size(); ++i) {
      if (call.inputs[i] != nullptr) in[i].shape = call.inputs[i]->shape();
    }
    ONWARD_ASSIGN_OR_RETURN(const Kernel kernel,
                            MakeShaped(factory, rule, options, node, in, out, opsets));
    for (size_t i = 0; i < out.size(); ++i) {
      if (call.outputs[i] == nullptr || outputs[i].shape.has_value()) continue;
      *call.outputs[i] = Tensor(out[i].dtype, *out[i].shape);
    }
    Tensor scratch(DType::kUint8, Shape{static_cast<int64_t>(kernel.workspace_bytes)});
    return kernel.run({call.inputs, call.outputs, scratch.raw(), call.random});
  }
};

}  // namespace

ShapeRule LikeInput(int i) {
  return [i](const KernelRequest& r, int) -> absl::StatusOr<Shape> {
    if (!r.HasInput(i)) return NodeError(r.node, absl::StrCat("input ", i, " is missing"));
    return r.in(i);
  };
}

ShapeRule LikeBroadcastInputs() {
  return [](const KernelRequest& r, int) -> absl::StatusOr<Shape> {
    Shape shape;
    for (const ValueSpec& input : r.inputs) {
      if (!input.present()) continue;
      ONWARD_ASSIGN_OR_RETURN(shape, BroadcastShapes(shape, *input.shape));
    }
    return shape;
  };
}

KernelFactory Adapt(KernelFactory factory, ShapeRule rule, AdaptOptions options) {
  return [factory = std::move(factory), rule = std::move(rule),
          options = std::move(options)](const KernelRequest& r) -> absl::StatusOr<Kernel> {
    bool known = true;
    for (const ValueSpec& v : r.inputs) known &= !v.present() || v.shape.has_value();
    for (const ValueSpec& v : r.outputs) known &= !v.present() || v.shape.has_value();
    std::vector<ValueSpec> outputs(r.outputs.begin(), r.outputs.end());
    if (known) {
      return MakeShaped(factory, rule, options, r.node, r.inputs, outputs, r.opsets,
                        r.arrangements);
    }
    auto late = std::make_shared<LateKernel>();
    *late = {factory, rule, options, r.node, {r.inputs.begin(), r.inputs.end()}, std::move(outputs),
             r.opsets};
    for (ValueSpec& v : late->inputs) {
      v.layout = nullptr;
      v.constant = nullptr;
    }
    Kernel kernel;
    kernel.run = [late = std::move(late)](const KernelCall& call) { return late->Run(call); };
    return kernel;
  };
}

KernelTable::Entry Adapted(std::string provider, int since, KernelFactory factory, ShapeRule shape,
                           std::string types, AdaptOptions options) {
  return {std::move(provider), since, Adapt(std::move(factory), shape, std::move(options)),
          std::move(types),    false, std::move(shape)};
}

}  // namespace onward
