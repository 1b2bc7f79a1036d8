// SPDX-License-Identifier: Apache-2.0
// The families of onnxruntime's operators, and what their bodies share: one call with its
// operands and attributes, checked before a body relies on them, since no schema does.
#ifndef ONWARD_CONTRIB_MICROSOFT_FAMILIES_H_
#define ONWARD_CONTRIB_MICROSOFT_FAMILIES_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/builder.h"
#include "core/graph/function_library.h"

namespace onward::microsoft {

inline constexpr std::string_view kDomain = "com.microsoft";

void RegisterActivations(FunctionLibrary& library);
void RegisterConvolutions(FunctionLibrary& library);
void RegisterMatMuls(FunctionLibrary& library);
void RegisterPackedWeights(FunctionLibrary& library);
void RegisterNormalizations(FunctionLibrary& library);
void RegisterAttentions(FunctionLibrary& library);
void RegisterRotary(FunctionLibrary& library);
void RegisterQuantized(FunctionLibrary& library);
void RegisterQuantizedLayers(FunctionLibrary& library);
void RegisterShapes(FunctionLibrary& library);
void RegisterCrops(FunctionLibrary& library);
void RegisterLegacy(FunctionLibrary& library);
void RegisterBlockedLayouts(FunctionLibrary& library);

// One call: its node, and its operands in the body that is being written.
class Call {
 public:
  Call(GraphBuilder& b, const Node& node, const std::vector<Expr>& inputs)
      : b_(b), node_(node), inputs_(inputs) {}

  GraphBuilder& b() const { return b_; }
  const Node& node() const { return node_; }
  // Operand i; undefined where the call omits it.
  Expr in(size_t i) const { return i < inputs_.size() ? inputs_[i] : Expr(); }
  size_t inputs() const { return inputs_.size(); }
  bool wants(int output) const { return node_.HasOutput(output); }
  bool ok() const { return b_.status().ok(); }
  // From this version on the standard has the operator asked for.
  bool opset_has(int since) const { return b_.graph().opset() >= since; }

  // Fails with the node's description in front of `message`.
  Expr Fail(const std::string& message) const;
  std::vector<Expr> Refuse(const std::string& message) const;

  // Whether operand i, where it is given, has one of these ranks; fails if not, or if its
  // rank is not known.
  bool HasRank(size_t i, std::initializer_list<int> ranks) const;
  // Whether the call gives these operands; fails if not.
  bool Given(std::initializer_list<int> operands) const;
  // The attribute, which has to be in [low, high]; fails and gives `low` where it is not.
  int64_t IntIn(const std::string& attribute, int64_t otherwise, int64_t low, int64_t high) const;
  // The same for an attribute that a call must have.
  int64_t RequiredInt(const std::string& attribute, int64_t low, int64_t high) const;
  // An attribute that is 0 or 1.
  bool Flag(const std::string& attribute, bool otherwise = false) const;
  // Fails where the call gives operand i or has the attribute at another value: what is
  // said of it in `what` is not supported.
  bool Without(size_t i, const std::string& what) const;
  bool Without(const std::string& attribute, int64_t standard) const;
  // A list of numbers; empty where the call has none.
  std::vector<float> Floats(const std::string& attribute) const;
  // Those attributes of the call that are named.
  Attributes Pick(std::initializer_list<std::string> names) const;

 private:
  GraphBuilder& b_;
  const Node& node_;
  const std::vector<Expr>& inputs_;
};

using CallBody = std::vector<Expr> (*)(const Call& call);
FunctionDef Define(CallBody body, int required, std::string operands = ".");

// [first, last) of one axis.
Expr SliceAxis(const Expr& x, int64_t axis, int64_t first, int64_t last);
// [0, 1, .. count) for a scalar int64.
Expr RangeTo(const Expr& count);
// Dimension `axis` as an int64 scalar: a constant where it is known.
Expr DimOf(const Expr& x, int axis);

// x with one axis moved, its rank being known: channels last to channels first, and back.
Expr ChannelsFirst(const Expr& x);
Expr ChannelsLast(const Expr& x);

// 0.5 x (1 + erf(x / sqrt 2)), or the form with tanh.
Expr Gelu(const Expr& x, bool by_tanh = false);
// What fused operators apply to their result: attribute `activation`, its parameters in
// activation_params or each in an attribute of its own; x where the call has none.
Expr Activated(const Call& call, const Expr& x);

// x normalized over its last axis, with the result's mean and 1 / deviation where wanted.
struct LayerNormal {
  Expr y, mean, inverse;
};
LayerNormal LayerNormalized(const Call& call, const Expr& x, const Expr& gamma, const Expr& beta,
                            float epsilon);
// x / sqrt(mean(x^2) + epsilon) * gamma over the axes from attribute `axis` on.
LayerNormal RootMeanNormalized(const Call& call, const Expr& x, const Expr& gamma,
                               float default_epsilon, bool wants_inverse);

// (q - zero) * scale as `like`'s type; a scale or zero point with one axis goes along the last.
Expr Dequantized(const Expr& q, const Expr& scale, const Expr& zero, const Expr& like);
// The same through the standard's operators, per tensor.
Expr DequantizeTensor(const Expr& q, const Expr& scale, const Expr& zero);
Expr QuantizeTensor(const Expr& x, const Expr& scale, const Expr& zero, DType otherwise);

// Self attention over merged weights: com.microsoft.Attention behind its quantized forms.
struct MergedAttention {
  Expr input, weights, bias, mask, past, attention_bias;
};
std::vector<Expr> AttendMerged(const Call& call, const MergedAttention& operands);

// The rows of embedding tables, summed and normalized.
struct Embedding {
  Expr ids, mask;
  Expr word_rows, position_rows, segment_rows;  // gathered already
  Expr gamma, beta;
};
std::vector<Expr> EmbedAndNormalize(const Call& call, const Embedding& parts);

}  // namespace onward::microsoft

#endif  // ONWARD_CONTRIB_MICROSOFT_FAMILIES_H_
