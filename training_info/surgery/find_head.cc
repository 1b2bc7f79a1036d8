// SPDX-License-Identifier: Apache-2.0
#include "training_info/surgery/find_head.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/graph/constant.h"
#include "training_info/weights/flow.h"

namespace onward {
namespace {

int ProducerOf(const Graph& graph, const std::string& value) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (absl::c_linear_search(graph.nodes[i].outputs, value)) return static_cast<int>(i);
  }
  return -1;
}
const Node* NodeOf(const Graph& graph, const std::string& value) {
  const int i = value.empty() ? -1 : ProducerOf(graph, value);
  return i < 0 ? nullptr : &graph.nodes[static_cast<size_t>(i)];
}

// The value that an Identity hands on.
std::string Original(const Graph& graph, std::string value) {
  for (const Node* node = NodeOf(graph, value); node != nullptr && node->Is("Identity");
       node = NodeOf(graph, value)) {
    value = node->inputs[0];
  }
  return value;
}

std::optional<Tensor> ConstantOf(const Graph& graph, const std::string& name) {
  const std::string value = Original(graph, name);
  const auto it = graph.initializers.find(value);
  if (it != graph.initializers.end()) return it->second;
  const Node* node = NodeOf(graph, value);
  return node == nullptr ? std::nullopt : ConstantValue(*node);
}
bool IsOneNumber(const Graph& graph, const std::string& value) {
  const std::optional<Tensor> constant = ConstantOf(graph, value);
  return constant.has_value() && constant->elements() == 1;
}

// An initializer, or one that a node reads in another shape (as CNTK's models and tied embeddings
// have it) or quantized. Of these type and shape matter alone: they are replaced.
std::optional<Tensor> ParameterOf(const Graph& graph, const std::string& name) {
  const std::string value = Original(graph, name);
  auto it = graph.initializers.find(value);
  if (it != graph.initializers.end()) return it->second;
  const Node* node = NodeOf(graph, value);
  if (node == nullptr || !node->HasInput(0)) return std::nullopt;
  it = graph.initializers.find(Original(graph, node->inputs[0]));
  if (it == graph.initializers.end()) return std::nullopt;
  const Tensor& source = it->second;
  if (node->Is("DequantizeLinear") && node->HasInput(1)) {
    const std::optional<Tensor> scale = ConstantOf(graph, node->inputs[1]);
    if (!scale.has_value()) return std::nullopt;
    return Tensor::Zeros(scale->dtype(), source.shape());
  }
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

// Follows nodes back while `next` names the input to go on with, for a while.
template <typename Next>
void WalkBack(const Graph& graph, std::string value, Next next) {
  constexpr int kMostNodes = 64;
  for (int nodes = 0; nodes < kMostNodes; ++nodes) {
    const int number = ProducerOf(graph, value);
    if (number < 0) return;
    const int input = next(graph.nodes[static_cast<size_t>(number)], number);
    if (input < 0) return;
    value = graph.nodes[static_cast<size_t>(number)].inputs[static_cast<size_t>(input)];
  }
}

// The input whose elements a node computes each for itself with one constant number; -1: none.
int InputWithANumber(const Graph& graph, const Node& node) {
  if (!IsOneOf(node, std::array{"Add", "Sub", "Mul", "Div", "Max", "Min", "Pow"}) ||
      node.inputs.size() != 2)
    return -1;
  if (IsOneNumber(graph, node.inputs[1])) return 0;
  return IsOneNumber(graph, node.inputs[0]) ? 1 : -1;
}

// Whether a value is sums or the largest of `source`, over some axis.
bool Reduces(const Graph& graph, const std::string& value, const std::string& source) {
  constexpr std::array kReductions = {"ReduceMax", "ReduceSum", "ReduceMean", "ReduceLogSumExp"};
  constexpr std::array kBetween = {"Reshape", "Expand", "Unsqueeze", "Exp", "Log", "Sub"};
  bool reduced = false, found = false;
  WalkBack(graph, value, [&](const Node& node, int) {
    reduced |= IsOneOf(node, kReductions);
    int input = InputWithANumber(graph, node);
    const bool goes_on = input >= 0 || IsOneOf(node, kReductions) || IsOneOf(node, kBetween);
    if (!goes_on || !node.HasInput(0)) return -1;
    input = std::max(input, 0);
    found = node.inputs[static_cast<size_t>(input)] == source;
    return found ? -1 : input;
  });
  return reduced && found;
}

// The last number of a shape that a graph computes.
std::optional<int64_t> LastOf(const Graph& graph, const std::string& shape) {
  std::optional<int64_t> last;
  const auto read = [&](const std::string& value) {
    const std::optional<Tensor> sizes = ConstantOf(graph, value);
    if (!sizes.has_value() || sizes->shape().rank() != 1 || sizes->elements() == 0) return;
    if (sizes->dtype() == DType::kInt64) last = sizes->values<int64_t>().back();
    if (sizes->dtype() == DType::kInt32) last = sizes->values<int32_t>().back();
  };
  read(shape);
  if (last.has_value()) return last;
  WalkBack(graph, shape, [&](const Node& node, int) {
    if (!IsOneOf(node, std::array{"Concat", "Cast", "Identity"}) || node.inputs.empty()) return -1;
    read(node.inputs.back());
    return last.has_value() ? -1 : static_cast<int>(node.inputs.size()) - 1;
  });
  return last;
}

// The walk from an output back to the layer.
class HeadSearch {
 public:
  explicit HeadSearch(const Graph& graph) : graph_(graph) {}

  absl::StatusOr<Head> From(const std::string& output) {
    const Node* last = nullptr;
    WalkBack(graph_, output, [&](const Node& node, int number) {
      last = &node;
      return Step(node, number);
    });
    if (found_) return std::move(head_);
    return absl::InvalidArgumentError(absl::StrCat(
        "no classifier was found before '", output, "'",
        last == nullptr ? ""
                        : absl::StrCat(": the way back ends at ", last->Describe(),
                                       why_.empty() ? "" : absl::StrCat(", ", why_)),
        "; --head replaces a last MatMul, Gemm or Conv with an initializer as weight: name "
        "another output with --train-output, or give the model a new last layer where it is made"));
  }

 private:
  // A Reshape before which the classes have to be on one axis.
  struct Target {
    int node;
    int64_t last;
    std::vector<int64_t> permuted;  // by a Transpose between it and the layer
  };

  // The input to go on with; -1: the walk is over.
  int Step(const Node& node, int number) {
    if (const int bias = BiasOf(node, number); bias >= 0) return 1 - bias;
    if (IsOneOf(node, std::array{"Gemm", "MatMul", "Conv"})) {
      found_ = TakeLayer(node, number);
      return -1;
    }
    if (node.Is("Reshape")) return TakeReshape(node, number) ? 0 : -1;
    if (node.Is("Transpose")) return TakeTranspose(node) ? 0 : -1;
    if (node.Is("DequantizeLinear") || node.Is("QuantizeLinear")) {
      return TakeQuantization(node, number) ? 0 : -1;
    }
    if (const int input = InputWithANumber(graph_, node); input >= 0) return input;
    return HandsOn(node) ? 0 : -1;
  }

  // The input of an Add that is the bias; -1: none.
  int BiasOf(const Node& node, int number) {
    const bool has_bias = bias_.node >= 0 && bias_.value.elements() != 1;
    if (!node.Is("Add") || has_bias || node.inputs.size() != 2) return -1;
    for (const int input : {1, 0}) {
      std::optional<Tensor> bias = ParameterOf(graph_, node.inputs[static_cast<size_t>(input)]);
      if (!bias.has_value()) continue;
      bias_ = {number, input, *std::move(bias)};
      return input;
    }
    return -1;
  }

  bool TakeLayer(const Node& node, int number) {
    const bool conv = node.Is("Conv");
    if (conv && node.Int("group", 1) != 1) return No("a convolution in groups");
    std::optional<Tensor> weight = ParameterOf(graph_, node.inputs[1]);
    if (!weight.has_value() || weight->shape().rank() < 2) return No("whose weight is computed");
    const int rank = weight->shape().rank();
    const bool first = conv || (node.Is("Gemm") && node.Int("transB", 0) != 0);
    const HeadParameter layer = {number, 1, *weight, first ? 0 : rank - 1};
    const int64_t classes = weight->shape()[layer.axis];
    const bool has_bias = bias_.node >= 0 && bias_.value.elements() != 1;
    if (!has_bias && !node.Is("MatMul") && node.HasInput(2)) {
      std::optional<Tensor> bias = ParameterOf(graph_, node.inputs[2]);
      if (!bias.has_value()) return No("whose bias is computed");
      bias_ = {number, 2, *std::move(bias)};
    }
    for (const Target& target : targets_) {
      const std::vector<int64_t>& order = target.permuted;
      const int64_t axis = conv ? 1 : static_cast<int64_t>(order.size()) - 1;
      const bool is_last = order.empty() ? !conv || IsMatrix(target) : order.back() == axis;
      if (!is_last || (target.last != classes && target.last != -1)) {
        return No(absl::StrCat("whose classes '",
                               graph_.nodes[static_cast<size_t>(target.node)].outputs[0],
                               "' does not keep apart"));
      }
      if (target.last == classes) head_.reshapes.push_back(target.node);
    }
    if (dequantized_ >= 0) return No("which computes in integers");
    head_.parameters.push_back(layer);
    if (bias_.node < 0) return true;
    const std::optional<int> axis = BiasAxis(classes, conv ? rank - 1 : 1);
    if (!axis.has_value()) return No("whose bias is not one of classes");
    bias_.axis = *axis;
    head_.parameters.push_back(bias_);
    return true;
  }
  // The axis of the bias that counts classes, the `from_end`-th of what it is added to.
  std::optional<int> BiasAxis(int64_t classes, int from_end) const {
    const Shape& shape = bias_.value.shape();
    const int rank = shape.rank(), last = rank - 1;
    if (rank == 0) return -1;
    if (bias_.value.elements() == 1) return rank < from_end ? last : rank - from_end;
    for (int i = 0; i < rank; ++i) {
      if (shape[i] == classes && bias_.value.elements() == classes) return i;
    }
    if (shape[last] == classes) return last;
    return std::nullopt;
  }
  // As Flatten makes one.
  bool IsMatrix(const Target& target) const {
    const Node& node = graph_.nodes[static_cast<size_t>(target.node)];
    const ValueType* type = graph_.TypeOf(node.outputs[0]);
    if (type != nullptr && type->rank() >= 0) return type->rank() == 2;
    const std::optional<Tensor> sizes = ConstantOf(graph_, node.inputs[1]);
    return sizes.has_value() && sizes->elements() == 2;
  }

  // One whose target is the shape of something restores it, as the old form of Softmax does.
  bool TakeReshape(const Node& node, int number) {
    if (!node.HasInput(1)) return false;
    const Node* target = NodeOf(graph_, node.inputs[1]);
    if (target != nullptr && target->Is("Shape")) return true;
    const std::optional<int64_t> last = LastOf(graph_, node.inputs[1]);
    if (!last.has_value()) return No("whose shape is computed");
    targets_.push_back({number, *last, {}});
    return true;
  }

  bool TakeTranspose(const Node& node) {
    for (Target& target : targets_) {
      if (!target.permuted.empty()) return No("the second one before a Reshape");
      target.permuted = node.Ints("perm");
      if (target.permuted.empty()) return No("without perm before a Reshape");
    }
    return true;
  }

  bool TakeQuantization(const Node& node, int number) {
    if (node.Is("QuantizeLinear") == (dequantized_ < 0)) return false;
    if (dequantized_ >= 0) head_.quantized.push_back({dequantized_, number});
    dequantized_ = dequantized_ < 0 ? number : -1;
    return true;
  }

  bool HandsOn(const Node& node) const {
    if (IsOneOf(node, std::array{"Softmax",
                                 "LogSoftmax",
                                 "Sigmoid",
                                 "HardSigmoid",
                                 "Relu",
                                 "LeakyRelu",
                                 "Tanh",
                                 "Softplus",
                                 "Exp",
                                 "Log",
                                 "Neg",
                                 "Clip",
                                 "Cast",
                                 "Identity",
                                 "Flatten",
                                 "Squeeze",
                                 "Dropout",
                                 "AveragePool",
                                 "GlobalAveragePool",
                                 "MaxPool",
                                 "GlobalMaxPool"})) {
      return true;
    }
    // Softmax and LogSoftmax as formulas.
    return IsOneOf(node, std::array{"Sub", "Div"}) && node.inputs.size() == 2 &&
           Reduces(graph_, node.inputs[1], node.inputs[0]);
  }

  bool No(std::string why) {
    why_ = std::move(why);
    return false;
  }

  const Graph& graph_;
  Head head_;
  HeadParameter bias_;
  std::vector<Target> targets_;
  int dequantized_ = -1;  // a DequantizeLinear whose QuantizeLinear is still to come
  std::string why_;
  bool found_ = false;
};

}  // namespace

absl::StatusOr<Head> FindHead(const Graph& graph, const std::string& output) {
  return HeadSearch(graph).From(output);
}

}  // namespace onward
