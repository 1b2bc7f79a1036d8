// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/builder.h"
#include "core/graph/constant.h"
#include "core/graph/verify.h"
#include "training_info/surgery/surgery.h"

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

int64_t Readers(const Graph& graph, const std::string& value) {
  int64_t readers = 0;
  for (const Node& node : graph.nodes) {
    readers += std::count(node.inputs.begin(), node.inputs.end(), value);
  }
  return readers;
}

// The classifier: a node, its weight (input 1) and its bias, and the axis of each that
// counts classes.
struct Head {
  Node* node = nullptr;
  Tensor weight;
  int weight_axis = 0;
  Node* bias_node = nullptr;
  int bias_input = 0;
};

std::optional<Tensor> ConstantOf(Graph* graph, const std::string& value) {
  auto it = graph->initializers.find(value);
  if (it != graph->initializers.end()) return it->second;
  const Node* node = Producer(graph, value);
  return node == nullptr ? std::nullopt : ConstantValue(*node);
}

// A weight among the initializers, or one that a node reads in another shape (as CNTK's
// models and tied embeddings have it). Of the latter only the shape matters: it is
// replaced.
std::optional<Tensor> WeightOf(Graph* graph, const std::string& value) {
  auto it = graph->initializers.find(value);
  if (it != graph->initializers.end()) return it->second;
  Node* node = Producer(graph, value);
  if (node == nullptr || !node->HasInput(0)) return std::nullopt;
  it = graph->initializers.find(node->inputs[0]);
  if (it == graph->initializers.end()) return std::nullopt;
  const Tensor& source = it->second;
  if (node->Is("Transpose") && source.shape().rank() == 2) {
    return Tensor::Zeros(source.dtype(), {source.shape()[1], source.shape()[0]});
  }
  if (!node->Is("Reshape") || !node->HasInput(1)) return std::nullopt;
  const std::optional<Tensor> sizes = ConstantOf(graph, node->inputs[1]);
  if (!sizes.has_value() || sizes->dtype() != DType::kInt64 || sizes->elements() != 2) {
    return std::nullopt;
  }
  const int64_t columns = sizes->values<int64_t>()[1];
  if (columns < 1 || source.elements() % columns != 0) return std::nullopt;
  return Tensor::Zeros(source.dtype(), {source.elements() / columns, columns});
}

// Whether a node hands on the classifier's scores, each for itself or all of an example
// together. A Reshape does where it restores a shape, as the old form of Softmax does.
bool HandsOn(Graph* graph, const Node& node) {
  for (const char* op :
       {"Softmax", "LogSoftmax", "Sigmoid", "Relu", "Identity", "Flatten", "Squeeze"}) {
    if (node.Is(op)) return true;
  }
  if (!node.Is("Reshape") || !node.HasInput(1)) return false;
  const Node* target = Producer(graph, node.inputs[1]);
  return target != nullptr && target->Is("Shape");
}

absl::StatusOr<Head> FindHead(Graph* graph, const std::string& output) {
  Head head;
  std::string value = output;
  constexpr int kMostHops = 16;
  for (int hops = 0; hops < kMostHops; ++hops) {
    Node* node = Producer(graph, value);
    if (node == nullptr) break;
    const auto is_bias = [&](int i) {
      return node->HasInput(i) && graph->initializers.contains(node->inputs[i]);
    };
    if (node->Is("Add") && head.bias_node == nullptr && (is_bias(0) || is_bias(1))) {
      head.bias_node = node;
      head.bias_input = is_bias(1) ? 1 : 0;
      value = node->inputs[1 - head.bias_input];
      continue;
    }
    const bool conv = node->Is("Conv") && node->Int("group", 1) == 1;
    if (node->Is("Gemm") || node->Is("MatMul") || conv) {
      const std::optional<Tensor> weight = WeightOf(graph, node->inputs[1]);
      if (!weight.has_value() || weight->shape().rank() < 2) break;
      const int last = weight->shape().rank() - 1;
      head.weight = *weight;
      head.weight_axis = conv || (node->Is("Gemm") && node->Int("transB", 0) != 0) ? 0 : last;
      if (head.bias_node == nullptr && is_bias(2)) {
        head.bias_node = node;
        head.bias_input = 2;
      }
      head.node = node;
      return head;
    }
    if (!HandsOn(graph, *node)) break;
    value = node->inputs[0];
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "no classifier was found before '", output,
      "': --head replaces a last MatMul, Gemm or Conv whose weight is an initializer"));
}

}  // namespace

void DropInitializersFromInputs(Graph* graph) {
  std::erase_if(graph->inputs,
                [&](const NamedType& in) { return graph->initializers.contains(in.name); });
}

absl::StatusOr<std::vector<std::string>> ReplaceHead(Graph* graph, const std::string& output,
                                                     int64_t classes) {
  ONWARD_ASSIGN_OR_RETURN(Head head, FindHead(graph, output));
  DropInitializersFromInputs(graph);
  std::vector<std::string> replaced;
  // Puts a fresh tensor where the node reads `old`: under its name, or, where others
  // read that too or it is computed, under a new one.
  auto replace = [&](Node* node, int input, const Tensor& old, int axis) {
    const std::string was = node->inputs[input];
    if (!IsFloating(old.dtype())) {
      return absl::UnimplementedError(
          absl::StrCat("--head: '", was, "' is ", DTypeName(old.dtype())));
    }
    std::string name = was;
    if (!graph->initializers.contains(was) || Readers(*graph, was) > 1) {
      name = GraphBuilder(graph, nullptr, "head").UniqueName(was + "__head");
      node->inputs[input] = name;
    }
    Shape shape = old.shape();
    if (axis < 0) {  // one number for one class
      shape.push_back(classes);
    } else {
      shape[axis] = classes;
    }
    Tensor fresh = Tensor::Zeros(old.dtype(), shape);
    graph->types[name] = ValueType::Of(fresh.dtype(), fresh.shape());
    graph->initializers.insert_or_assign(name, std::move(fresh));
    replaced.push_back(name);
    return absl::OkStatus();
  };
  ONWARD_RETURN_IF_ERROR(replace(head.node, 1, head.weight, head.weight_axis));
  if (head.bias_node != nullptr) {
    const Tensor bias = graph->initializers.at(head.bias_node->inputs[head.bias_input]);
    ONWARD_RETURN_IF_ERROR(replace(head.bias_node, head.bias_input, bias, bias.shape().rank() - 1));
  }
  std::vector<std::string> outputs;
  for (const NamedType& out : graph->outputs) outputs.push_back(out.name);
  Prune(graph, outputs);
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
