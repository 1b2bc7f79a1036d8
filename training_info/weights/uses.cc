// SPDX-License-Identifier: Apache-2.0
// How constants are used: each meets data in some node, and the node tells what it is for.
#include <algorithm>
#include <array>
#include <optional>

#include "absl/strings/str_cat.h"
#include "training_info/weights/flow.h"
#include "training_info/weights/weights.h"

namespace onward {
namespace {

Use Never(std::string reason) { return {Evidence::kNever, std::move(reason)}; }
Use Perhaps(std::string reason) { return {Evidence::kIfNothingElse, std::move(reason)}; }
Use Likely(std::string reason) { return {Evidence::kLikely, std::move(reason)}; }
Use Weight(std::string reason) { return {Evidence::kWeight, std::move(reason), true}; }

class UseFinder : private FlowGraph {
 public:
  explicit UseFinder(const Graph& graph) : FlowGraph(graph) {}

  absl::flat_hash_map<std::string, Use> Run() {
    for (const Node& node : nodes_) Visit(node);
    for (const NamedType& out : graph_.outputs) {
      if (IsFixed(out.name)) Note(out.name, Perhaps("an output"));
    }
    PassBack();
    return std::move(uses_);
  }

 private:
  // --- forward: flows, and what each node says of its constants

  void Visit(const Node& node) {
    Flow flow = FlowThrough(node);
    for (size_t i = 0; flow > Flow::kPositions && i < node.inputs.size(); ++i) {
      const std::string& value = node.inputs[i];
      if (value.empty() || !IsFixed(value)) continue;
      const Use use = Judge(node, static_cast<int>(i));
      if (use.evidence >= Evidence::kLikely) flow = Flow::kLayer;
      Note(value, use);
    }
    SetFlow(node, flow);
  }

  void Note(const std::string& value, const Use& use) {
    auto [it, inserted] = uses_.try_emplace(value, use);
    if (!inserted && it->second.evidence < use.evidence) it->second = use;
  }

  // Constants that are first computed with get the use of the result.
  void PassBack() {
    for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
      const bool all_fixed =
          !node->outputs.empty() && !node->inputs.empty() && IsFixed(node->outputs[0]);
      if (!all_fixed || node->Is("Shape") || node->Is("Size")) continue;
      for (const std::string& out : node->outputs) {
        auto use = uses_.find(out);
        if (use == uses_.end()) continue;
        const Use passed = use->second;
        for (size_t i = 0; i < node->inputs.size(); ++i) {
          const std::string& value = node->inputs[i];
          if (value.empty()) continue;
          if (i > 0 && IsOneOf(*node, kMovement)) continue;
          Note(value, InExpression(*node, static_cast<int>(i), passed));
        }
      }
    }
  }

  // A part of an expression of constants whose result is used as `whole`.
  Use InExpression(const Node& node, int i, const Use& whole) const {
    const std::string& value = node.inputs[i];
    if (i > 0 && (node.Is("QuantizeLinear") || node.Is("DequantizeLinear")))
      return Never("a setting of " + node.op_type);
    if ((node.Is("Expand") || node.Is("Tile")) && Axes(value) == 0)
      return Never("a single number that fills a tensor");
    const bool product = IsOneOf(node, kProducts);
    if (!product && !IsOneOf(node, kElementwise)) return whole;
    if (Axes(value) == 0) return Never(absl::StrCat("a single number in ", node.op_type));
    for (const std::string& other : node.inputs) {
      if (other != value && FlowOf(other) == Flow::kPositions && FlowOf(value) == Flow::kConstant) {
        return Never("combined with positions only");
      }
    }
    const std::optional<Shape> shape = ShapeOf(value);
    if (product && i < 2 && shape.has_value() && shape->rank() == 1)
      return Never(absl::StrCat("a direction in a ", node.op_type, " of constants"));
    return whole;
  }

  // --- a constant that meets data: input i of the node

  Use Judge(const Node& node, int i) const {
    const std::string of = absl::StrCat(" of ", node.op_type);
    if (!node.domain.empty()) {
      return Axes(node.inputs[i]) == 0 ? Never("a single number for " + node.op_type)
                                       : Likely("read by " + node.op_type);
    }
    if (node.Is("Gemm") && i == 2) return Weight("bias" + of);
    if (node.Is("Conv") || node.Is("ConvTranspose")) {
      return i == 0   ? Perhaps("the input" + of)
             : i == 2 ? Weight("bias" + of)
                      : ProductWeight(node, i);
    }
    if (node.Is("DeformConv"))
      return i == 1 || i == 3 ? Weight("weight" + of) : Perhaps("an input" + of);
    if (node.Is("MatMul") || node.Is("Gemm") || node.Is("Einsum")) return ProductWeight(node, i);
    if (IsOneOf(node, kRecurrent)) {
      if (i == 5 || i == 6) return Never("start state" + of);
      return i == 0 || i == 4 ? Perhaps("the input" + of) : Weight("weight" + of);
    }
    if (IsOneOf(node, kNormalizations)) return NormalizationWeight(node, i);
    if (node.Is("PRelu")) return i == 1 ? Weight("slope" + of) : Perhaps("the input" + of);
    if (IsOneOf(node, kGathers)) {
      return i == 0 ? Weight("embedding table" + of) : Never("index" + of);
    }
    if (node.Is("Attention"))
      return i < 3 ? Likely("learned input" + of) : Never("mask or cache" + of);
    if (IsOneOf(node, kElementwise)) return Element(node, i);
    if (node.Is("Concat") || node.Is("Where")) return Token(node, i);
    if (node.Is("Carry")) return Never("start state of a loop");
    return OtherOperator(node, i);
  }

  Use OtherOperator(const Node& node, int i) const {
    constexpr std::array kSettings = {"Clip",
                                      "OneHot",
                                      "NonMaxSuppression",
                                      "QuantizeLinear",
                                      "Range",
                                      "DequantizeLinear",
                                      "Equal",
                                      "Greater",
                                      "Less",
                                      "GreaterOrEqual",
                                      "LessOrEqual",
                                      "TopK",
                                      "ConstantOfShape",
                                      "RoiAlign",
                                      "MaxRoiPool",
                                      "Celu",
                                      "DynamicQuantizeLinear"};
    if (Axes(node.inputs[i]) == 0 || IsOneOf(node, kSettings) ||
        (i > 0 && IsOneOf(node, kMovement))) {
      return Never("a setting of " + node.op_type);
    }
    return Perhaps("read by " + node.op_type);
  }

  Use ProductWeight(const Node& node, int i) const {
    const std::optional<Tensor> t = Contents(node.inputs[i]);
    if (t.has_value() && CountsUp(*t)) return Never("the numbers 0, 1, 2, ... for " + node.op_type);
    if (t.has_value() && TurnsIntoAngles(node, i)) return Never("frequencies of sines and cosines");
    if (Axes(node.inputs[i]) == 0 && node.Is("Einsum")) return Never("a single number in Einsum");
    return Weight("weight of " + node.op_type);
  }

  // The expected value of bins: a fixed convolution in detectors.
  static bool CountsUp(const Tensor& t) {
    constexpr int64_t kFewest = 8, kMost = 4096;
    if (t.elements() < kFewest || t.elements() > kMost || t.dtype() != DType::kFloat) return false;
    const auto v = t.values<float>();
    for (size_t k = 0; k < v.size(); ++k) {
      if (v[k] != static_cast<float>(k)) return false;
    }
    return true;
  }

  // An outer product with positions whose sine and cosine are taken.
  bool TurnsIntoAngles(const Node& node, int i) const {
    const std::optional<Shape> shape = ShapeOf(node.inputs[i]);
    if (!shape.has_value() || Axes(node.inputs[i]) != 1 || !node.HasOutput(0)) return false;
    std::string value = node.outputs[0];
    for (int hop = 0; hop < kMostHops; ++hop) {
      auto readers = readers_.find(value);
      if (readers == readers_.end()) return false;
      const Node& reader = *readers->second.front();
      if (reader.Is("Sin") || reader.Is("Cos")) return true;
      if (!reader.HasOutput(0)) return false;
      if (!IsOneOf(reader, kSameNumbers) && !reader.Is("Concat") && !reader.Is("Expand"))
        return false;
      value = reader.outputs[0];
    }
    return false;
  }

  Use NormalizationWeight(const Node& node, int i) const {
    if (i == 0) return Perhaps("the input of " + node.op_type);
    if (node.Is("BatchNormalization") && i >= 3)
      return Never("running statistic of " + node.op_type);
    const std::string role = (i == 1 ? "scale of " : "shift of ") + node.op_type;
    if (!Holds(node.inputs[i], IsUniform)) return Weight(role);
    // Ones and zeros may stand for a layer without weights, or for one whose scale and
    // shift follow as nodes of their own.
    std::string value = node.HasOutput(0) ? node.outputs[0] : "";
    for (int hop = 0; hop < kMostHops && !value.empty(); ++hop) {
      auto readers = readers_.find(value);
      if (readers == readers_.end() || readers->second.size() != 1) break;
      const Node& reader = *readers->second.front();
      if (node.Is("InstanceNormalization") && reader.Is("Mul") && reader.inputs.size() == 2 &&
          (IsFixed(reader.inputs[0]) || IsFixed(reader.inputs[1]))) {
        return Never("ones and zeros in front of a scale");
      }
      if (!IsOneOf(reader, kSameNumbers) || !reader.HasOutput(0)) break;
      value = reader.outputs[0];
    }
    return {Evidence::kLikely, role, /*layer_operand=*/true};
  }

  Use Token(const Node& node, int i) const {
    const std::string& value = node.inputs[i];
    if (node.Is("Where") && i == 0) return Never("condition of Where");
    if (Axes(value) == 0) return Never("a single number in " + node.op_type);
    if (Holds(value, IsMask)) return Never("a mask");
    for (const std::string& other : node.inputs) {
      if (FlowOf(other) == Flow::kLayer && LayerFollows(node))
        return Likely("token beside the results of layers in " + node.op_type);
    }
    return Perhaps("part of " + node.op_type);
  }

  // --- element-wise arithmetic

  const std::string& Partner(const Node& node, int i) const {
    const std::string* best = &node.inputs[i == 0 ? node.inputs.size() - 1 : 0];
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (static_cast<int>(k) != i && FlowOf(node.inputs[k]) > FlowOf(*best))
        best = &node.inputs[k];
    }
    return *best;
  }

  Use Element(const Node& node, int i) const {
    const std::string& value = node.inputs[i];
    const int axes = Axes(value);
    const std::string& partner = Partner(node, i);
    const bool shifts = node.Is("Add") || node.Is("Sum") || (node.Is("Sub") && i == 0);
    if (axes == 0) {
      return shifts && HasOneOutput(partner) && TakesBias(partner)
                 ? Weight("bias")
                 : Never("a single number in " + node.op_type);
    }
    if (Holds(value, IsMask)) return Never("a mask");
    if (axes == 1 && node.Is("Mul") && IsNormalized(partner))
      return Weight("scale of a normalization");
    if (axes == 1 && shifts && TakesBias(partner)) return Weight("bias");
    if (FlowOf(partner) < Flow::kLayer) return Perhaps("applied to the input before any layer");
    if (Holds(value, IsSinusoid)) return Never("a table of sines and cosines");
    if (Holds(value, IsGrid)) return Never("a regular grid");
    if (!LayerFollows(node)) return Perhaps(absl::StrCat(node.op_type, " behind the last layer"));
    if (shifts) return Likely(axes > 1 ? "table added to layers" : "shift of a layer");
    if (node.Is("Mul") && axes <= 1) return Likely("scale of a layer");
    return Perhaps("operand of " + node.op_type);
  }

  // Whether the result is one that a bias is added to: a product without one, or
  // something scaled by a weight.
  bool TakesBias(const std::string& value) const {
    const Node* maker = Maker(value);
    if (maker == nullptr) return false;
    if (maker->Is("MatMul") || maker->Is("Einsum")) return ReadsConstant(*maker);
    if (IsOneOf(*maker, kProducts)) return !maker->HasInput(2) && ReadsConstant(*maker);
    if (!maker->Is("Mul") || maker->inputs.size() != 2) return false;
    for (const std::string& in : maker->inputs) {
      auto use = uses_.find(in);
      if (IsFixed(in) && use != uses_.end() && use->second.evidence >= Evidence::kLikely)
        return true;
    }
    return IsNormalized(value);
  }
  // A product with one output has a bias of one number.
  bool HasOneOutput(const std::string& value) const {
    const Node* maker = Maker(value);
    if (maker == nullptr || maker->inputs.size() < 2 || !IsFixed(maker->inputs[1])) return false;
    const std::optional<Shape> shape = ShapeOf(maker->inputs[1]);
    if (!shape.has_value() || shape->rank() < 2) return false;
    const bool outputs_first =
        maker->Is("Conv") || (maker->Is("Gemm") && maker->Int("transB", 0) != 0);
    return IsOneOf(*maker, kProducts) && (*shape)[outputs_first ? 0 : shape->rank() - 1] == 1;
  }
  absl::flat_hash_map<std::string, Use> uses_;
};

}  // namespace

absl::flat_hash_map<std::string, Use> UsesOfConstants(const Graph& graph) {
  return UseFinder(graph).Run();
}

}  // namespace onward
