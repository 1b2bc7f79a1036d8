// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/cast_node.h"
#include "core/graph/infer.h"
#include "core/graph/name_scope.h"
#include "training_info/surgery/portable.h"

namespace onward {
namespace {

bool IsHalfTensor(const ValueType& type) { return type.is_tensor() && IsHalf(type.dtype); }

// What runtimes do with tensors of any type. Bodies are widened themselves.
bool OnlyMoves(const Node& node) {
  constexpr const char* kMoves[] = {"Cast", "CastLike", "Constant",  "Flatten",  "Identity",
                                    "If",   "Loop",     "Reshape",   "Scan",     "Shape",
                                    "Size", "Squeeze",  "Transpose", "Unsqueeze"};
  return node.domain.empty() && absl::c_linear_search(kMoves, node.op_type);
}

class Widening {
 public:
  Widening(const Graph& graph, const OperatorSet& operators)
      : operators_(operators), names_(graph) {}

  // `typed` is the graph with types, those of what it captures included.
  void Widen(const Graph& typed, Graph* graph) {
    std::map<std::string, std::string> wide;  // value -> the same in float, in this graph
    std::vector<Node> nodes = std::move(graph->nodes);
    graph->nodes.clear();
    for (const Node& node : nodes) {
      Node changed = node;
      WidenBodies(typed, &changed);
      if (OnlyMoves(node)) {
        graph->nodes.push_back(std::move(changed));
      } else {
        Add(std::move(changed), typed, &wide, graph);
      }
    }
  }

 private:
  static std::optional<ValueType> TypeIn(const Graph& typed, const std::string& value) {
    if (const ValueType* type = typed.TypeOf(value)) return *type;
    const auto it = typed.initializers.find(value);
    if (it == typed.initializers.end()) return std::nullopt;
    return ValueType::Of(it->second.dtype(), it->second.shape());
  }
  static bool IsHalfIn(const Graph& typed, const std::string& value) {
    const std::optional<ValueType> type = TypeIn(typed, value);
    return type.has_value() && IsHalfTensor(*type);
  }

  // A body is typed like a graph whose inputs are what it captures. What cannot be typed stays.
  void WidenBodies(const Graph& around, Node* node) {
    for (auto& [name, attribute] : node->attributes) {
      auto* body = std::get_if<Attribute::Body>(&attribute.value);
      if (body == nullptr) continue;
      Graph typed = **body, changed = **body;
      typed.opsets = around.opsets;
      for (const std::string& value : CapturedValues(**body)) {
        const std::optional<ValueType> type = TypeIn(around, value);
        if (!type.has_value()) continue;
        typed.inputs.push_back({value, *type});
        typed.types[value] = *type;
      }
      if (!InferKnownTypes(&typed, operators_).ok()) continue;
      Widen(typed, &changed);
      *body = std::make_shared<const Graph>(std::move(changed));
    }
  }

  void Add(Node node, const Graph& typed, std::map<std::string, std::string>* wide, Graph* graph) {
    for (std::string& in : node.inputs) {
      if (in.empty() || !IsHalfIn(typed, in)) continue;
      std::string& known = (*wide)[in];
      if (known.empty()) {
        known = names_.Unique(absl::StrCat(in, "__float"));
        graph->nodes.push_back(CastNode(in, known, DType::kFloat));
      }
      in = known;
    }
    if (IsHalf(static_cast<DType>(node.Int("dtype", 0))))
      node.attributes["dtype"] = static_cast<int64_t>(DType::kFloat);
    const Tensor* value = node.TensorAttribute("value");
    if (value != nullptr && IsHalf(value->dtype()))
      node.attributes["value"] = RoundedTo(DType::kFloat, *value);
    std::vector<std::pair<std::string, std::string>> rounded;  // in float, rounded
    for (std::string& out : node.outputs) {
      if (out.empty() || !IsHalfIn(typed, out)) continue;
      rounded.emplace_back(names_.Unique(absl::StrCat(out, "__wide")), out);
      out = rounded.back().first;
    }
    graph->nodes.push_back(std::move(node));
    for (const auto& [from, to] : rounded) {
      graph->nodes.push_back(CastNode(from, to, TypeIn(typed, to)->dtype));
    }
  }

  const OperatorSet& operators_;
  NameScope names_;
};

}  // namespace

absl::Status ComputeHalvesInFloat(const OperatorSet& operators, Graph* graph) {
  Graph typed = *graph;
  ONWARD_RETURN_IF_ERROR(InferKnownTypes(&typed, operators));
  if (absl::c_none_of(typed.types, [](const auto& t) { return IsHalfTensor(t.second); }))
    return absl::OkStatus();
  Widening(typed, operators).Widen(typed, graph);
  return absl::OkStatus();
}

}  // namespace onward
