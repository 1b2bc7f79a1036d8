// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/fuse.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/graph/constant.h"
#include "core/graph/operator_set.h"
#include "core/graph/verify.h"

namespace onward {
namespace {

std::vector<double> AsDoubles(const Tensor& t) {
  std::vector<double> values(t.elements());
  for (int64_t i = 0; i < t.elements(); ++i) {
    values[i] = t.dtype() == DType::kFloat ? t.data<float>()[i] : t.data<double>()[i];
  }
  return values;
}

Tensor FromDoubles(DType dtype, const Shape& shape, const std::vector<double>& values) {
  Tensor t(dtype, shape);
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::kFloat) {
      t.data<float>()[i] = static_cast<float>(values[i]);
    } else {
      t.data<double>()[i] = values[i];
    }
  }
  return t;
}

class Fuser {
 public:
  Fuser(const std::vector<std::string>& needed, const absl::flat_hash_set<std::string>& variables,
        Graph* graph)
      : variables_(variables), graph_(*graph), gone_(graph->nodes.size(), false) {
    for (const std::string& name : needed) readers_[name].push_back(-1);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      for (const std::string& v : AllInputs(node)) readers_[v].push_back(static_cast<int>(i));
      if (auto value = ConstantValue(node)) constants_.emplace(node.outputs[0], *value);
    }
  }

  void Run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (gone_[i] || node.outputs.size() != 1) continue;
      if (node.Is("Conv") || node.Is("MatMul") || node.Is("Gemm")) Extend(static_cast<int>(i));
    }
    std::vector<Node> nodes;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!gone_[i]) nodes.push_back(std::move(graph_.nodes[i]));
    }
    graph_.nodes = std::move(nodes);
  }

 private:
  // The node that alone reads `value`, as an ordinary input and once.
  int OnlyReader(const std::string& value) const {
    auto it = readers_.find(value);
    if (it == readers_.end() || it->second.size() != 1 || it->second[0] < 0) return -1;
    const Node& node = graph_.nodes[it->second[0]];
    for (const std::string& in : node.inputs) {
      if (in == value) return node.outputs.size() == 1 ? it->second[0] : -1;
    }
    return -1;
  }

  const Tensor* Constant(const Node& node, int input) const {
    if (!node.HasInput(input)) return nullptr;
    const std::string& name = node.inputs[input];
    if (auto it = constants_.find(name); it != constants_.end()) return &it->second;
    auto it = graph_.initializers.find(name);
    return it == graph_.initializers.end() || variables_.contains(name) ? nullptr : &it->second;
  }

  void Extend(int start) {
    Node fused = graph_.nodes[start];
    std::vector<int> taken = {start};
    const auto next = [&] { return OnlyReader(fused.outputs[0]); };
    const auto take = [&](int reader) {
      taken.push_back(reader);
      fused.outputs = graph_.nodes[reader].outputs;
    };
    if (fused.op_type == "Conv") {
      if (const int bn = next(); bn >= 0 && FoldNormalization(graph_.nodes[bn], &fused)) take(bn);
    } else if (fused.op_type == "MatMul") {
      if (const int add = next(); add >= 0 && TakeBias(graph_.nodes[add], &fused)) take(add);
    }
    bool extended = fused.op_type == "MatMul" && fused.HasInput(2);
    if (const int add = next(); add >= 0 && TakeResidual(graph_.nodes[add], &fused)) {
      take(add);
      extended = true;
    }
    if (const int activation = next();
        activation >= 0 && TakeActivation(graph_.nodes[activation], &fused)) {
      take(activation);
      extended = true;
    }
    if (taken.size() == 1) return;
    if (extended) {
      fused.op_type = absl::StrCat("Fused", fused.op_type);
      fused.domain = std::string(kOnwardDomain);
      graph_.opsets.try_emplace(fused.domain, 1);
    }
    for (int i : taken) gone_[i] = true;
    gone_[taken.back()] = false;
    for (const std::string& v : fused.inputs) {
      if (v.empty()) continue;
      for (int& reader : readers_[v]) {
        if (std::find(taken.begin(), taken.end(), reader) != taken.end()) reader = taken.back();
      }
    }
    graph_.nodes[taken.back()] = std::move(fused);
  }

  // W' = W*s, B' = (B - mean)*s + b with s = scale / sqrt(var + epsilon).
  bool FoldNormalization(const Node& bn, Node* conv) {
    if (!bn.Is("BatchNormalization") || bn.Int("training_mode", 0) != 0 ||
        bn.inputs[0] != conv->outputs[0]) {
      return false;
    }
    const Tensor* w = Constant(*conv, 1);
    const Tensor* b = Constant(*conv, 2);
    const Tensor* p[4];
    for (int i = 0; i < 4; ++i) p[i] = Constant(bn, i + 1);
    if (w == nullptr || (conv->HasInput(2) && b == nullptr) || w->shape().rank() < 3) return false;
    if (w->dtype() != DType::kFloat && w->dtype() != DType::kDouble) return false;
    const int64_t channels = w->shape()[0];
    for (const Tensor* t : p) {
      if (t == nullptr || t->dtype() != w->dtype() || t->elements() != channels) return false;
    }
    if (b != nullptr && (b->elements() != channels || b->dtype() != w->dtype())) return false;
    std::vector<double> weights = AsDoubles(*w);
    std::vector<double> bias = b != nullptr ? AsDoubles(*b) : std::vector<double>(channels);
    const std::vector<double> scale = AsDoubles(*p[0]), shift = AsDoubles(*p[1]);
    const std::vector<double> mean = AsDoubles(*p[2]), variance = AsDoubles(*p[3]);
    const size_t size = weights.size() / std::max<int64_t>(channels, 1);
    for (int64_t c = 0; c < channels; ++c) {
      const double s = scale[c] / std::sqrt(variance[c] + bn.Float("epsilon", 1e-5f));
      for (size_t i = 0; i < size; ++i) weights[c * size + i] *= s;
      bias[c] = (bias[c] - mean[c]) * s + shift[c];
    }
    const std::string name = absl::StrCat(conv->outputs[0], "__folded_");
    graph_.initializers.emplace(name + "w", FromDoubles(w->dtype(), w->shape(), weights));
    graph_.initializers.emplace(name + "b", FromDoubles(w->dtype(), Shape{channels}, bias));
    conv->inputs.resize(3);
    conv->inputs[1] = name + "w";
    conv->inputs[2] = name + "b";
    return true;
  }

  // The other operand of an Add.
  static std::string Other(const Node& add, const std::string& value) {
    if (!add.Is("Add") || add.inputs.size() != 2) return "";
    if (add.inputs[0] == add.inputs[1]) return "";
    return add.inputs[0] == value ? add.inputs[1] : add.inputs[0];
  }

  int RankOf(const std::string& value) const {
    if (auto it = graph_.initializers.find(value); it != graph_.initializers.end()) {
      return it->second.shape().rank();
    }
    if (auto it = constants_.find(value); it != constants_.end()) return it->second.shape().rank();
    const ValueType* type = graph_.TypeOf(value);
    return type == nullptr || !type->has_rank ? -1 : type->rank();
  }

  // A vector along the columns. (Added to a product of vectors it would not be.)
  bool TakeBias(const Node& add, Node* matmul) const {
    const std::string other = Other(add, matmul->outputs[0]);
    if (other.empty() || RankOf(other) != 1 || RankOf(matmul->inputs[1]) < 2) return false;
    matmul->inputs.resize(2);
    matmul->inputs.push_back(other);
    return true;
  }

  bool TakeResidual(const Node& add, Node* fused) const {
    const std::string other = Other(add, fused->outputs[0]);
    const ValueType *type = graph_.TypeOf(other), *result = graph_.TypeOf(add.outputs[0]);
    if (other.empty() || type == nullptr || result == nullptr || !type->has_rank ||
        !result->has_rank || type->rank() != result->rank() ||
        graph_.initializers.contains(other)) {
      return false;
    }
    for (int i = 0; i < type->rank(); ++i) {
      const Dim &a = type->dims[i], &b = result->dims[i];
      const bool same = a.known() ? a.value == b.value : !a.symbol.empty() && a.symbol == b.symbol;
      if (!same) return false;
    }
    fused->inputs.resize(4);
    fused->inputs[3] = other;
    return true;
  }

  bool TakeActivation(const Node& node, Node* fused) const {
    if (node.Is("Relu")) {
      fused->attributes["activation"] = "Relu";
      return true;
    }
    if (!node.Is("Clip") || node.inputs[0] != fused->outputs[0]) return false;
    const Tensor *low = Constant(node, 1), *high = Constant(node, 2);
    if (low == nullptr || high == nullptr || low->dtype() != DType::kFloat ||
        low->elements() != 1 || high->dtype() != DType::kFloat || high->elements() != 1) {
      return false;
    }
    fused->attributes["activation"] = "Clip";
    fused->attributes["activation_low"] = *low->data<float>();
    fused->attributes["activation_high"] = *high->data<float>();
    return true;
  }

  const absl::flat_hash_set<std::string>& variables_;
  Graph& graph_;
  std::vector<bool> gone_;
  absl::flat_hash_map<std::string, std::vector<int>> readers_;
  absl::flat_hash_map<std::string, Tensor> constants_;
};

// Readers of a copy read the original; who is left without readers goes.
void ReadThroughIdentities(Graph* graph) {
  absl::flat_hash_map<std::string, std::string> original;
  for (Node& node : graph->nodes) {
    for (std::string& v : node.inputs) {
      if (auto it = original.find(v); it != original.end()) v = it->second;
    }
    if (node.Is("Identity") && node.HasInput(0) && node.outputs.size() == 1) {
      original[node.outputs[0]] = node.inputs[0];
    }
  }
}

}  // namespace

void FuseFollowers(const std::vector<std::string>& needed,
                   const absl::flat_hash_set<std::string>& variables, Graph* graph) {
  ReadThroughIdentities(graph);
  Prune(graph, needed);
  Fuser(needed, variables, graph).Run();
  Prune(graph, needed);
}

}  // namespace onward
