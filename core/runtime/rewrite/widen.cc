// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/rewrite/widen.h"

#include <iterator>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/graph/cast_node.h"

namespace onward {
namespace {

// Sums of products, whose meaning in 16 bits is the float's, rounded.
bool IsProduct(const Node& node) {
  if (node.domain == kOnwardDomain) {
    return node.op_type == "ConvInputGrad" || node.op_type == "ConvWeightGrad";
  }
  return node.Is("Conv") || node.Is("ConvTranspose") || node.Is("Gemm") || node.Is("MatMul");
}

// Which entry of the table serves the request. Nothing where none does, or where one refuses it.
std::optional<size_t> ServingEntry(const KernelRequest& request, const KernelTable& table) {
  const auto* entries = table.Find(request.node.op_type, request.node.domain);
  for (size_t i = 0; entries != nullptr && i < entries->size(); ++i) {
    const absl::Status status = (*entries)[i].factory(request).status();
    if (status.ok()) return i;
    if (status.code() != absl::StatusCode::kUnimplemented) return std::nullopt;
  }
  return std::nullopt;
}

std::vector<ValueSpec> InFloat(absl::Span<const ValueSpec> specs) {
  std::vector<ValueSpec> wide(specs.begin(), specs.end());
  for (ValueSpec& spec : wide) {
    if (!IsHalf(spec.dtype)) continue;
    spec = {DType::kFloat, spec.shape, nullptr, nullptr};
  }
  return wide;
}

bool IsServedBetterInFloat(const KernelRequest& call, const KernelTable& table) {
  const std::optional<size_t> narrow = ServingEntry(call, table);
  if (!narrow.has_value() || *narrow == 0) return false;
  const std::vector<ValueSpec> inputs = InFloat(call.inputs), outputs = InFloat(call.outputs);
  const std::optional<size_t> wide = ServingEntry({call.node, inputs, outputs, call.opsets}, table);
  return wide.has_value() && *wide < *narrow;
}

}  // namespace

std::vector<Node> Widener::Widen(const KernelRequest& call, const EvaluateContext& context,
                                 NameScope* names,
                                 absl::flat_hash_map<std::string, ValueType>* types) {
  const auto known = [](const ValueSpec& v) { return !v.present() || v.shape.has_value(); };
  if (!IsProduct(call.node) || call.inputs.empty() || !IsHalf(call.inputs[0].dtype) ||
      !absl::c_all_of(call.inputs, known) || !absl::c_all_of(call.outputs, known) ||
      !IsServedBetterInFloat(call, context.device->kernels())) {
    return {};
  }
  const auto in_float = [&](const std::string& value, const ValueSpec& spec) {
    std::string name = names->Unique(absl::StrCat(value, "__float"));
    types->emplace(name, ValueType::Of(DType::kFloat, *spec.shape));
    return name;
  };
  std::vector<Node> before, after;
  Node product = call.node;
  absl::flat_hash_map<std::string, std::string> copies;
  for (int i = 0; i < static_cast<int>(product.inputs.size()); ++i) {
    const ValueSpec& spec = call.inputs[i];
    // What is there for its shape may have any type.
    if (!IsHalf(spec.dtype) || context.operators->ShapeOnly(call.node, i)) continue;
    std::string& value = product.inputs[i];
    std::string& copy = spec.constant == nullptr ? copies[value] : constants_[value];
    if (copy.empty()) {
      copy = in_float(value, spec);
      before.push_back(CastNode(value, copy, DType::kFloat));
    }
    value = copy;
  }
  for (size_t i = 0; i < product.outputs.size(); ++i) {
    const ValueSpec& spec = call.outputs[i];
    if (!IsHalf(spec.dtype)) continue;
    std::string wide = in_float(product.outputs[i], spec);
    after.push_back(CastNode(wide, product.outputs[i], spec.dtype));
    product.outputs[i] = std::move(wide);
  }
  before.push_back(std::move(product));
  absl::c_move(after, std::back_inserter(before));
  return before;
}

}  // namespace onward
