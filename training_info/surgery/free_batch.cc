// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/infer.h"
#include "training_info/surgery/surgery.h"

namespace onward {
namespace {

constexpr char kBatchSymbol[] = "batch";

// The constant shape a Reshape reads, if its first entry is the batch size.
absl::Status FreeReshape(const Node& node, int64_t batch, Graph* graph) {
  const std::string name = node.inputs[1];
  auto patch = [&](const Tensor& shape) {
    Tensor copy = shape.Clone();
    if (copy.dtype() == DType::kInt64 && copy.elements() > 0 && copy.data<int64_t>()[0] == batch) {
      // 0 copies the input's first axis, unless allowzero gives it another meaning.
      const bool open = std::find(copy.data<int64_t>() + 1, copy.data<int64_t>() + copy.elements(),
                                  -1) != copy.data<int64_t>() + copy.elements();
      copy.data<int64_t>()[0] = open ? 0 : -1;
    }
    return copy;
  };
  if (auto it = graph->initializers.find(name); it != graph->initializers.end()) {
    it->second = patch(it->second);
    return absl::OkStatus();
  }
  for (Node& producer : graph->nodes) {
    if (producer.Is("Constant") && producer.outputs[0] == name &&
        producer.TensorAttribute("value") != nullptr) {
      producer.attributes["value"] = patch(*producer.TensorAttribute("value"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

int64_t FixedBatch(const Graph& graph) {
  int64_t batch = -1;
  for (const NamedType& in : graph.FeedInputs()) {
    if (in.type.rank() < 1 || !in.type.dims[0].known()) return 0;
    if (batch >= 0 && batch != in.type.dims[0].value) return 0;
    batch = in.type.dims[0].value;
  }
  return std::max<int64_t>(batch, 0);
}

absl::Status FreeBatch(const OperatorSet& operators, Graph* graph) {
  const int64_t batch = FixedBatch(*graph);
  if (batch == 0) return absl::OkStatus();
  Graph freed = *graph;
  absl::flat_hash_set<std::string> depends;  // values computed from the inputs
  for (NamedType& in : freed.inputs) {
    if (freed.initializers.contains(in.name)) continue;
    in.type.dims[0] = Dim{-1, kBatchSymbol};
    depends.insert(in.name);
  }
  freed.types.clear();
  const std::vector<Node> nodes = freed.nodes;
  for (const Node& node : nodes) {
    const bool reached = std::any_of(node.inputs.begin(), node.inputs.end(),
                                     [&](const std::string& v) { return depends.contains(v); });
    if (!reached) continue;
    depends.insert(node.outputs.begin(), node.outputs.end());
    if (node.Is("Reshape") && depends.contains(node.inputs[0]))
      ONWARD_RETURN_IF_ERROR(FreeReshape(node, batch, &freed));
  }
  for (NamedType& out : freed.outputs) {
    if (out.type.rank() >= 1 && out.type.dims[0].value == batch) out.type.dims[0] = Dim{};
  }
  if (absl::Status s = InferTypes(&freed, operators); !s.ok()) {
    return absl::FailedPreconditionError(absl::StrCat("the model has a fixed batch size of ", batch,
                                                      " that cannot be changed (", s.message(),
                                                      "); use --batch ", batch));
  }
  for (const NamedType& out : freed.outputs) {
    if (out.type.rank() >= 1 && out.type.dims[0].known()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the model has a fixed batch size of ", batch, " that cannot be changed (output '",
          out.name, "' keeps its size); use --batch ", batch));
    }
  }
  *graph = std::move(freed);
  return absl::OkStatus();
}

}  // namespace onward
