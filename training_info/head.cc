// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "training_info/author_graphs.h"

namespace onward {
namespace {

Node* Producer(Graph* graph, const std::string& value) {
  for (Node& node : graph->nodes) {
    for (const std::string& out : node.outputs) {
      if (out == value) return &node;
    }
  }
  return nullptr;
}

// The classifier's weight and bias among the initializers, and the axis of each
// that counts classes.
struct Head {
  std::string weight, bias;
  int weight_axis = 0, bias_axis = 0;
};

bool IsInitializer(const Graph& graph, const std::string& name) {
  return graph.initializers.contains(name);
}

absl::StatusOr<Head> FindHead(Graph* graph, const std::string& output) {
  Head head;
  std::string value = output;
  for (int hops = 0; hops < 16; ++hops) {
    Node* node = Producer(graph, value);
    if (node == nullptr) break;
    if (node->Is("Gemm") && IsInitializer(*graph, node->inputs[1])) {
      head.weight = node->inputs[1];
      head.weight_axis = node->Int("transB", 0) ? 0 : 1;
      if (node->HasInput(2) && IsInitializer(*graph, node->inputs[2])) head.bias = node->inputs[2];
    } else if (node->Is("MatMul") && IsInitializer(*graph, node->inputs[1])) {
      head.weight = node->inputs[1];
      head.weight_axis = graph->initializers.at(head.weight).shape().rank() - 1;
    } else if (node->Is("Conv") && IsInitializer(*graph, node->inputs[1]) &&
               node->Int("group", 1) == 1) {
      head.weight = node->inputs[1];
      head.weight_axis = 0;
      if (node->HasInput(2) && IsInitializer(*graph, node->inputs[2])) head.bias = node->inputs[2];
    } else if (node->Is("Add")) {
      const int side = IsInitializer(*graph, node->inputs[1])   ? 1
                       : IsInitializer(*graph, node->inputs[0]) ? 0
                                                                : -1;
      if (side < 0) break;
      head.bias = node->inputs[side];
      value = node->inputs[1 - side];
      continue;
    } else if (node->Is("Softmax") || node->Is("LogSoftmax") || node->Is("Identity") ||
               node->Is("Flatten") || node->Is("Squeeze")) {
      value = node->inputs[0];
      continue;
    }
    break;
  }
  if (head.weight.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no classifier was found before '", output,
        "': --head replaces a last MatMul, Gemm or Conv whose weight is an initializer"));
  }
  if (!head.bias.empty()) head.bias_axis = graph->initializers.at(head.bias).shape().rank() - 1;
  return head;
}

Tensor NewWeight(const Tensor& old, int axis, int64_t classes, bool zero, std::mt19937_64* random) {
  Shape shape = old.shape();
  const int64_t fan_in = old.elements() / std::max<int64_t>(1, shape[axis]);
  shape[axis] = classes;
  Tensor fresh = Tensor::Zeros(old.dtype(), shape);
  if (zero) return fresh;
  const double bound = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, fan_in)));
  for (int64_t i = 0; i < fresh.elements(); ++i) {
    const double u = static_cast<double>((*random)() >> 11) * 0x1p-53;
    const double v = (2 * u - 1) * bound;
    if (old.dtype() == DType::kDouble)
      fresh.data<double>()[i] = v;
    else
      fresh.data<float>()[i] = static_cast<float>(v);
  }
  return fresh;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ReplaceHead(Graph* graph, const std::string& output,
                                                     int64_t classes, uint64_t seed) {
  ONWARD_ASSIGN_OR_RETURN(Head head, FindHead(graph, output));
  std::mt19937_64 random(seed);
  std::vector<std::string> replaced;
  auto replace = [&](const std::string& name, int axis, bool zero) {
    Tensor& old = graph->initializers.at(name);
    if (old.dtype() != DType::kFloat && old.dtype() != DType::kDouble) {
      return absl::UnimplementedError(
          absl::StrCat("--head: '", name, "' is ", DTypeName(old.dtype())));
    }
    old = NewWeight(old, axis, classes, zero, &random);
    graph->types[name] = ValueType::Of(old.dtype(), old.shape());
    for (NamedType& in : graph->inputs) {
      if (in.name == name) in.type = graph->types[name];
    }
    replaced.push_back(name);
    return absl::OkStatus();
  };
  ONWARD_RETURN_IF_ERROR(replace(head.weight, head.weight_axis, false));
  if (!head.bias.empty()) ONWARD_RETURN_IF_ERROR(replace(head.bias, head.bias_axis, true));
  // Declared types downstream of the head no longer hold.
  for (auto it = graph->types.begin(); it != graph->types.end();) {
    const bool source = graph->IsInput(it->first) || graph->initializers.contains(it->first);
    if (source)
      ++it;
    else
      graph->types.erase(it++);
  }
  for (NamedType& out : graph->outputs) {
    if (out.name == output && out.type.has_rank) {
      for (Dim& d : out.type.dims) d = {};
    }
  }
  return replaced;
}

}  // namespace onward
