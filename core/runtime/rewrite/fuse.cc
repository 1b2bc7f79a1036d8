// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/rewrite/fuse.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/device/arrangements.h"
#include "core/graph/operator_set.h"
#include "core/graph/patterns/pattern.h"
#include "core/runtime/rewrite/take_followers.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

Tensor FromDoubles(DType dtype, const Shape& shape, const std::vector<double>& values) {
  Tensor t(dtype, shape);
  DispatchFloating(dtype, [&]<typename T>() {
    for (size_t i = 0; i < values.size(); ++i) t.data<T>()[i] = FromDouble<T>(values[i]);
  });
  return t;
}

// W' = W*s, B' = (B - mean)*s + b with s = scale / sqrt(var + epsilon).
struct FoldedConv {
  Tensor weights, bias;

  // Of W, scale, b, mean, var and perhaps B.
  static FoldedConv Of(const std::vector<const Tensor*>& constants, float epsilon) {
    const Tensor& w = *constants[0];
    const int64_t channels = w.shape()[0];
    std::vector<std::vector<double>> values;
    for (const Tensor* t : constants) values.push_back(*ToDoubles(*t));
    std::vector<double>& weights = values[0];
    const std::vector<double>&scale = values[1], &shift = values[2], &mean = values[3],
          &variance = values[4];
    std::vector<double> bias = values.size() > 5 ? values[5] : std::vector<double>(channels);
    const size_t size = weights.size() / std::max<int64_t>(channels, 1);
    for (int64_t c = 0; c < channels; ++c) {
      const double s = scale[c] / std::sqrt(variance[c] + epsilon);
      for (size_t i = 0; i < size; ++i) weights[c * size + i] *= s;
      bias[c] = (bias[c] - mean[c]) * s + shift[c];
    }
    return {FromDoubles(w.dtype(), w.shape(), weights),
            FromDoubles(w.dtype(), Shape{channels}, bias)};
  }
};

constexpr int kResidual = 3;  // input of the fused operators

class ProductFuser {
 public:
  ProductFuser(const absl::flat_hash_set<std::string>& keep, Arrangements* arrangements,
               Graph* graph)
      : graph_(*graph), arrangements_(arrangements), pattern_(graph, keep) {}

  void Run() {
    for (const Node& node : pattern_.nodes()) {
      if (pattern_.gone(node) || node.outputs.size() != 1) continue;
      if (node.Is("Conv") || node.Is("MatMul") || node.Is("Gemm")) Extend(node);
    }
    pattern_.Finish();
  }

 private:
  std::optional<Tensor> Constant(const Node& node, int input) const {
    return node.HasInput(input) ? pattern_.Constant(node.inputs[input]) : std::nullopt;
  }

  void Extend(const Node& start) {
    Node fused = start;
    std::vector<const Node*> taken = {&start};
    // The node that alone reads what is fused so far, as an ordinary input.
    const auto next = [&]() -> const Node* {
      const Node* reader = pattern_.OnlyConsumer(fused.outputs[0]);
      const bool ordinary = reader != nullptr && reader->outputs.size() == 1 &&
                            absl::c_linear_search(reader->inputs, fused.outputs[0]);
      return ordinary ? reader : nullptr;
    };
    const auto take = [&](const Node* reader) {
      taken.push_back(reader);
      fused.outputs = reader->outputs;
    };
    if (fused.op_type == "Conv") {
      if (const Node* bn = next(); bn != nullptr && FoldNormalization(*bn, &fused)) take(bn);
    } else if (fused.op_type == "MatMul") {
      if (const Node* add = next(); add != nullptr && TakeBias(*add, &fused)) take(add);
    }
    bool extended = fused.op_type == "MatMul" && fused.HasInput(2);
    if (const Node* add = next();
        add != nullptr && TakeResidual(pattern_, *add, kResidual, &fused)) {
      take(add);
      extended = true;
    }
    if (const Node* act = next(); act != nullptr && TakeActivation(pattern_, *act, &fused)) {
      take(act);
      extended = true;
    }
    if (taken.size() == 1) return;
    if (extended) {
      fused.op_type = absl::StrCat("Fused", fused.op_type);
      fused.domain = std::string(kOnwardDomain);
      ImportDomain(fused.domain, &graph_);
    }
    pattern_.Replace(taken, *taken.back(), std::move(fused));
  }

  bool FoldNormalization(const Node& bn, Node* conv) {
    if (!bn.Is("BatchNormalization") || bn.Int("training_mode", 0) != 0 ||
        bn.inputs[0] != conv->outputs[0]) {
      return false;
    }
    const std::optional<Tensor> w = Constant(*conv, 1), b = Constant(*conv, 2);
    if (!w.has_value() || w->shape().rank() < 3 || (conv->HasInput(2) && !b.has_value()))
      return false;
    if (w->dtype() != DType::kFloat && w->dtype() != DType::kDouble) return false;
    const int64_t channels = w->shape()[0];
    const auto fits = [&](const std::optional<Tensor>& t) {
      return t.has_value() && t->dtype() == w->dtype() && t->elements() == channels;
    };
    std::optional<Tensor> parameters[4];  // scale, shift, mean, variance
    for (int i = 0; i < 4; ++i) {
      parameters[i] = Constant(bn, i + 1);
      if (!fits(parameters[i])) return false;
    }
    if (b.has_value() && !fits(b)) return false;
    const float epsilon = bn.Float("epsilon", 1e-5f);
    std::vector<const Tensor*> constants = {&*w};
    for (const std::optional<Tensor>& p : parameters) constants.push_back(&*p);
    if (b.has_value()) constants.push_back(&*b);
    const auto fold = [&] { return FoldedConv::Of(constants, epsilon); };
    const auto folded =
        arrangements_ == nullptr
            ? std::make_shared<const FoldedConv>(fold())
            : arrangements_->Get<FoldedConv>(constants, absl::StrCat("normalized ", epsilon), fold);
    conv->inputs.resize(3);
    conv->inputs[1] = pattern_.NewName(*conv, "folded_w");
    conv->inputs[2] = pattern_.NewName(*conv, "folded_b");
    graph_.initializers[conv->inputs[1]] = Held(folded->weights, folded);
    graph_.initializers[conv->inputs[2]] = Held(folded->bias, folded);
    return true;
  }

  int RankOf(const std::string& value) const {
    if (auto it = graph_.initializers.find(value); it != graph_.initializers.end()) {
      return it->second.shape().rank();
    }
    const ValueType* type = graph_.TypeOf(value);
    return type == nullptr || !type->has_rank ? -1 : type->rank();
  }

  // A vector along the columns. (Added to a product of vectors it would not be.)
  bool TakeBias(const Node& add, Node* matmul) const {
    const std::string other = OtherOperand(add, matmul->outputs[0]);
    if (other.empty() || RankOf(other) != 1 || RankOf(matmul->inputs[1]) < 2) return false;
    if (!KeepsShape(pattern_, add, matmul->outputs[0])) return false;
    matmul->inputs.resize(2);
    matmul->inputs.push_back(other);
    return true;
  }

  Graph& graph_;
  Arrangements* arrangements_;
  PatternGraph pattern_;
};

}  // namespace

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

void FuseFollowers(const absl::flat_hash_set<std::string>& keep, Arrangements* arrangements,
                   Graph* graph) {
  if (Has(*graph, {"Conv", "MatMul", "Gemm"})) ProductFuser(keep, arrangements, graph).Run();
}

}  // namespace onward
