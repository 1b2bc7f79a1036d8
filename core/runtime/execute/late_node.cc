// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/execute/late_node.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace onward {
namespace {

constexpr size_t kMaxKernels = 32;
constexpr int64_t kMostElements = 32;

bool IsSmall(const Tensor& t) {
  return t.elements() <= kMostElements && t.shape().rank() <= 1 && t.dtype() != DType::kString;
}

std::string KeyOf(const Tensor& t) {
  std::string key(1, static_cast<char>(t.dtype()));
  for (int64_t d : t.shape()) key.append(reinterpret_cast<const char*>(&d), sizeof d);
  if (IsSmall(t)) key.append("=").append(static_cast<const char*>(t.raw()), t.bytes());
  return key;
}

}  // namespace

absl::StatusOr<const LateNode::Entry*> LateNode::Prepare(const std::vector<const Tensor*>& inputs,
                                                         const EvaluateContext& context) {
  std::vector<std::string> key(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] != nullptr) key[i] = KeyOf(*inputs[i]);
  }
  auto found = std::find_if(entries_.begin(), entries_.end(),
                            [&](const Entry& entry) { return entry.key == key; });
  if (found != entries_.end()) {
    std::rotate(entries_.begin(), found, found + 1);
    return &entries_.front();
  }
  Entry entry{std::move(key), std::vector<Tensor>(inputs.size()), {}};
  std::vector<const Tensor*> constants(inputs.size(), nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr || !IsSmall(*inputs[i])) continue;
    entry.constants[i] = inputs[i]->Clone();
    constants[i] = &entry.constants[i];
  }
  absl::StatusOr<PreparedNode> prepared = PrepareNode(node_, inputs, constants, context);
  if (!prepared.ok()) {
    const bool missing = prepared.status().code() == absl::StatusCode::kNotFound;
    return missing ? absl::UnimplementedError(prepared.status().message()) : prepared.status();
  }
  entry.prepared = *std::move(prepared);
  if (entries_.size() >= kMaxKernels) entries_.pop_back();
  entries_.insert(entries_.begin(), std::move(entry));
  return &entries_.front();
}

absl::Status LateNode::Run(const ValueCall& call, const RandomState& random) {
  std::vector<const Tensor*> inputs(call.inputs.size(), nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (call.inputs[i] == nullptr) continue;
    inputs[i] = call.inputs[i]->tensor();
    if (inputs[i] == nullptr) {
      return NodeError(
          node_, absl::StrCat("takes tensors, but input ", i, " is ", call.inputs[i]->ToString()));
    }
  }
  const EvaluateContext context{plan_.device, plan_.operators, &plan_.opsets, random};
  ONWARD_ASSIGN_OR_RETURN(const Entry* entry, Prepare(inputs, context));
  ONWARD_ASSIGN_OR_RETURN(std::vector<Tensor> outputs,
                          RunPrepared(entry->prepared, inputs, context));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (call.outputs[i] != nullptr) *call.outputs[i] = std::move(outputs[i]);
  }
  return absl::OkStatus();
}

}  // namespace onward
