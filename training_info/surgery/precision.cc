// SPDX-License-Identifier: Apache-2.0
#include "training_info/surgery/precision.h"

#include <cmath>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/graph/cast_node.h"
#include "core/graph/constant.h"
#include "core/graph/name_scope.h"
#include "core/graph/verify.h"

namespace onward {
namespace {

constexpr double kLargestFloat16 = 65504;

struct Row {
  Precision precision;
  std::vector<const char*> ops;
};

// What is not listed computes in float: normalisations (their statistics are sums over many
// elements), Softmax and losses (exponentials and logarithms), reductions, CumSum and
// GlobalAveragePool (long sums), Exp, Log, Pow and Reciprocal (large results), recurrent layers and
// Attention (all of these inside). PyTorch's autocast draws the line in the same places.
const std::vector<Row>& Table() {
  static const auto* table = new std::vector<Row>{
      {Precision::kLow, {"Conv", "ConvTranspose", "Einsum", "Gemm", "MatMul"}},
      // Element by element, with results of the size of what comes in.
      {Precision::kFollows,
       {"Abs",  "Add",  "Celu",    "Clip", "Div",       "Elu",  "Erf",
        "Gelu", "Max",  "Mean",    "Min",  "LeakyRelu", "Mish", "HardSigmoid",
        "Mul",  "Neg",  "PRelu",   "Relu", "HardSwish", "Selu", "ThresholdedRelu",
        "Sign", "Sqrt", "Sigmoid", "Sub",  "Softsign",  "Sum",  "Swish",
        "Tanh", "Where"}},
      // The same numbers in another place, or the mean of a few.
      {Precision::kFollows,
       {"AveragePool", "Concat", "DepthToSpace", "Dropout",  "Expand",         "Flatten",
        "Gather",      "Split",  "SpaceToDepth", "GatherND", "GatherElements", "Identity",
        "MaxPool",     "Pad",    "Reshape",      "Slice",    "Squeeze",        "Tile",
        "Transpose",   "Trilu",  "Unsqueeze"}},
      // An attribute, or another input, says which type comes out.
      {Precision::kOwn,
       {"Bernoulli",
        "BlackmanWindow",
        "Constant",
        "ConstantOfShape",
        "DequantizeLinear",
        "DynamicQuantizeLinear",
        "EyeLike",
        "HammingWindow",
        "HannWindow",
        "If",
        "Loop",
        "MelWeightMatrix",
        "Multinomial",
        "QuantizeLinear",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
        "Scan",
        "SequenceMap"}},
  };
  return *table;
}

// double stays what it is.
bool IsReal(DType dtype) { return dtype == DType::kFloat || IsHalf(dtype); }

bool Fits(const Tensor& t, DType low) {
  if (low != DType::kFloat16 || t.dtype() != DType::kFloat) return true;
  return absl::c_all_of(t.values<float>(),
                        [](float v) { return !(std::abs(v) > kLargestFloat16); });
}

class Lowering {
 public:
  Lowering(const Graph& graph, DType low, const Renaming& masters, const OperatorSet& operators)
      : graph_(graph), low_(low), operators_(operators), names_(graph) {
    for (const auto& [weight, master] : masters) now_[weight] = {master, DType::kFloat};
    for (const auto& [name, tensor] : graph.initializers) {
      (Fits(tensor, low) ? castable_ : too_large_).insert(name);
    }
  }

  LoweredForward Run(const std::vector<WantedValue>& wanted) {
    Graph part = graph_;
    std::vector<std::string> names;
    for (const WantedValue& w : wanted) names.push_back(w.name);
    Prune(&part, names);
    for (const Node& node : part.nodes) {
      NoteConstant(node);
      if (!PassesOn(node)) Add(node);
    }
    for (const WantedValue& w : wanted) forward_.values.push_back(In(w.dtype, w.name));
    return std::move(forward_);
  }

 private:
  // What stands for a value of the graph, and the type it has there.
  struct Standing {
    std::string name;
    DType dtype;
  };

  DType OwnType(const std::string& value) const {
    const ValueType* type = graph_.TypeOf(value);
    return type == nullptr || !type->is_tensor() ? DType::kUndefined : type->dtype;
  }
  Standing Now(const std::string& value) const {
    auto it = now_.find(value);
    return it != now_.end() ? it->second : Standing{value, OwnType(value)};
  }

  // The value in a type: by a Cast, made once, where it stands in another.
  std::string In(DType dtype, const std::string& value) {
    const Standing now = Now(value);
    if (now.dtype == dtype || !IsReal(now.dtype) || !IsReal(dtype)) return now.name;
    std::string& cast = casts_[{now.name, dtype}];
    if (!cast.empty()) return cast;
    cast = names_.Unique(absl::StrCat(now.name, "__", DTypeName(dtype)));
    forward_.nodes.push_back(CastNode(now.name, cast, dtype));
    return cast;
  }

  // Constants under other shapes are constants.
  void NoteConstant(const Node& node) {
    if (const std::optional<Tensor> value = ConstantValue(node)) {
      (Fits(*value, low_) ? castable_ : too_large_).insert(node.outputs[0]);
      return;
    }
    if (PrecisionOf(node) != Precision::kFollows) return;
    const auto real = [&](const std::string& v) { return IsReal(OwnType(v)); };
    if (absl::c_count_if(node.inputs, real) != 1) return;
    if (castable_.contains(*absl::c_find_if(node.inputs, real))) {
      castable_.insert(node.outputs.begin(), node.outputs.end());
    }
  }

  // The inputs that are numbers to compute with; others say how.
  static bool IsData(const Node& node, size_t input) { return !node.Is("Dropout") || input == 0; }

  // A Cast between these types only says which one the file computes in.
  bool PassesOn(const Node& node) {
    if (!node.Is("Cast") && !node.Is("CastLike")) return false;
    if (!IsReal(OwnType(node.inputs[0])) || !IsReal(OwnType(node.outputs[0]))) return false;
    now_[node.outputs[0]] = Now(node.inputs[0]);
    if (castable_.contains(node.inputs[0])) castable_.insert(node.outputs[0]);
    return true;
  }

  bool IsDefinedFor(DType dtype, const Node& node) const {
    std::vector<ValueType> types(node.inputs.size());
    std::vector<InputFact> facts(node.inputs.size());
    for (size_t i = 0; i < facts.size(); ++i) {
      const ValueType* type = graph_.TypeOf(node.inputs[i]);
      if (type == nullptr) continue;
      types[i] = *type;
      if (IsReal(type->dtype) && IsData(node, i)) types[i].dtype = dtype;
      facts[i].type = &types[i];
    }
    return operators_.BrokenDemands(node, facts, graph_.opsets).empty();
  }

  // In which type the node computes; undefined: every value in its own.
  DType ComputesIn(const Node& node) const {
    bool any = false, any_low = false, all_low = true, fits = true;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const std::string& input = node.inputs[i];
      if (input.empty() || !IsData(node, i)) continue;
      const DType dtype = Now(input).dtype;
      if (dtype == DType::kUndefined || dtype == DType::kDouble) return DType::kUndefined;
      if (!IsReal(dtype)) continue;
      any = true;
      any_low |= dtype == low_;
      all_low &= dtype == low_ || castable_.contains(input);
      fits &= !too_large_.contains(input);
    }
    const Precision precision = PrecisionOf(node);
    if (!any || precision == Precision::kOwn) return DType::kUndefined;
    const bool low = precision == Precision::kLow
                         ? fits
                         : precision == Precision::kFollows && any_low && all_low;
    return low && IsDefinedFor(low_, node) ? low_ : DType::kFloat;
  }

  std::string Read(const Node& node, size_t input, DType dtype) {
    const std::string& value = node.inputs[input];
    if (value.empty()) return value;
    // Whatever it is.
    if (node.Is("Shape") || node.Is("Size") || node.Is("Cast")) return Now(value).name;
    const bool computes = dtype != DType::kUndefined && IsData(node, input);
    return In(computes ? dtype : OwnType(value), value);
  }

  void Add(const Node& node) {
    const DType dtype = ComputesIn(node);
    if (dtype == low_ && PrecisionOf(node) == Precision::kLow) ++forward_.products;
    Node copy = node;
    Renaming captured;
    bool changed = false;
    ForEachBody(node, [&](const std::string&, const Graph& body) {
      for (const std::string& v : CapturedValues(body)) {
        captured[v] = In(OwnType(v), v);
        changed |= captured[v] != v;
      }
    });
    if (changed) RenameReads(captured, &copy);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      copy.inputs[i] = Read(node, i, dtype);
      changed |= copy.inputs[i] != node.inputs[i];
    }
    if (!changed) return;
    if (!copy.name.empty()) copy.name = absl::StrCat(copy.name, "__", DTypeName(low_));
    for (std::string& v : copy.outputs) {
      if (v.empty()) continue;
      const DType own = OwnType(v);
      Standing standing{names_.Unique(absl::StrCat(v, "__", DTypeName(low_))),
                        IsReal(own) && dtype != DType::kUndefined ? dtype : own};
      now_[v] = standing;
      v = std::move(standing.name);
    }
    forward_.nodes.push_back(std::move(copy));
  }

  const Graph& graph_;
  const DType low_;
  const OperatorSet& operators_;
  NameScope names_;
  absl::flat_hash_map<std::string, Standing> now_;
  absl::flat_hash_set<std::string> castable_, too_large_;  // constants, by whether they fit
  std::map<std::pair<std::string, DType>, std::string> casts_;
  LoweredForward forward_;
};

}  // namespace

Precision PrecisionOf(const Node& node) {
  if (!node.domain.empty()) return Precision::kOwn;
  for (const Row& row : Table()) {
    if (absl::c_linear_search(row.ops, node.op_type)) return row.precision;
  }
  return Precision::kFloat;
}

LoweredForward LowerPrecision(const Graph& graph, const std::vector<WantedValue>& wanted, DType low,
                              const Renaming& masters, const OperatorSet& operators) {
  return Lowering(graph, low, masters, operators).Run(wanted);
}

int OpsetForPrecision(const Graph& graph, DType low) {
  constexpr int kConvolutionsOfBfloat16 = 22;
  const bool convolves = absl::c_any_of(
      graph.nodes, [](const Node& node) { return node.Is("Conv") || node.Is("ConvTranspose"); });
  return low == DType::kBFloat16 && convolves ? kConvolutionsOfBfloat16 : 0;
}

}  // namespace onward
