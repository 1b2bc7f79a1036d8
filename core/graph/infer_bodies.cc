// SPDX-License-Identifier: Apache-2.0
#include "core/graph/infer_bodies.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/base/status.h"
#include "core/graph/constant.h"
#include "core/graph/infer.h"

namespace onward {
namespace {

using Types = std::vector<ValueType>;

// A body is typed again until its carried types hold; a state that still changes after
// two rounds keeps its element type alone, and after the last all of them do.
constexpr int kRoundsBeforeForgetting = 2;
constexpr int kMaxRounds = 6;
// Nested loops multiply their rounds; what is behind the budget stays unknown.
constexpr int64_t kVisitsPerNode = 64;

ValueType ElementTypeOnly(const ValueType& type) {
  if (type.kind == ValueType::Kind::kTensor) return ValueType::Unranked(type.dtype);
  ValueType reduced = type;
  if (type.element != nullptr) {
    reduced.element = std::make_shared<const ValueType>(ElementTypeOnly(*type.element));
  }
  return reduced;
}

Dim JoinDims(const Dim& a, const Dim& b) {
  if (a.known() && a.value == b.value) return Dim{a.value, {}};
  if (!a.known() && !b.known() && !a.symbol.empty() && a.symbol == b.symbol) return a;
  return {};
}

int64_t CountNodes(const Node& node) {
  int64_t count = 1;
  ForEachBody(node, [&](const std::string&, const Graph& body) {
    for (const Node& n : body.nodes) count += CountNodes(n);
  });
  return count;
}

class BodyInference {
 public:
  BodyInference(const Node& root, const OperatorSet& operators,
                const std::map<std::string, int>& opsets)
      : operators_(operators), opsets_(opsets), budget_(kVisitsPerNode * CountNodes(root)) {}

  Types Outputs(const Node& node, FactOf known) {
    Types types;
    if (node.Is("If")) {
      types = OfBranches(node, known);
    } else if (const Graph* body = node.Subgraph("body")) {
      const Call call = Typed(node, *body, known);
      types = node.Is("Loop")   ? OfLoop(node, call)
              : node.Is("Scan") ? OfScan(node, call, known)
                                : OfSequenceMap(call);
    }
    types.resize(node.outputs.size());
    return types;
  }

  Types Inputs(const Node& node, FactOf known) {
    const Graph* body = node.Subgraph("body");
    return body == nullptr ? Types{} : Typed(node, *body, known).inputs;
  }

 private:
  // Types of a body's inputs and outputs, whichever iteration runs.
  struct Call {
    Types inputs, outputs;
  };

  static ValueType TypeOf(const std::string& value, FactOf known) {
    if (value.empty()) return {};
    const ValueType* type = known(value).type;
    return type == nullptr ? ValueType{} : *type;
  }

  Types OfBranches(const Node& node, FactOf known) {
    const Graph* then_branch = node.Subgraph("then_branch");
    const Graph* else_branch = node.Subgraph("else_branch");
    if (then_branch == nullptr || else_branch == nullptr) return {};
    Types types = OfBody(*then_branch, {}, known);
    const Types others = OfBody(*else_branch, {}, known);
    for (size_t i = 0; i < types.size(); ++i) {
      types[i] = i < others.size() ? JoinTypes(types[i], others[i]) : ValueType{};
    }
    return types;
  }

  static Types OfLoop(const Node& node, const Call& call) {
    const size_t states = node.inputs.size() < 2 ? 0 : node.inputs.size() - 2;
    Types types;
    for (size_t k = 0; k < states && 2 + k < call.inputs.size(); ++k) {
      types.push_back(call.inputs[2 + k]);
    }
    for (size_t k = 1 + states; k < call.outputs.size(); ++k) {
      types.push_back(Stacked(call.outputs[k], 0, Dim{}));
    }
    return types;
  }

  static Types OfScan(const Node& node, const Call& call, FactOf known) {
    const size_t states = States(node);
    Dim length;
    const std::vector<int64_t> axes = node.Ints("scan_input_axes");
    for (size_t k = states; k < node.inputs.size() && !length.known(); ++k) {
      const ValueType type = TypeOf(node.inputs[k], known);
      const int axis = AxisOf(axes, k - states, type.rank());
      if (axis >= 0) length = type.dims[axis];
    }
    Types types(call.inputs.begin(), call.inputs.begin() + std::min(states, call.inputs.size()));
    const std::vector<int64_t> out_axes = node.Ints("scan_output_axes");
    for (size_t k = states; k < call.outputs.size(); ++k) {
      const ValueType& slice = call.outputs[k];
      types.push_back(Stacked(
          slice, slice.has_rank ? AxisOf(out_axes, k - states, slice.rank() + 1) : 0, length));
    }
    return types;
  }

  static Types OfSequenceMap(const Call& call) {
    Types types;
    for (const ValueType& type : call.outputs) {
      types.push_back(ValueType::Holding(ValueType::Kind::kSequence, type));
    }
    return types;
  }

  static size_t States(const Node& node) {
    const int64_t given = static_cast<int64_t>(node.inputs.size());
    return given - std::clamp<int64_t>(node.Int("num_scan_inputs", 0), 0, given);
  }

  // The axis among `rank`; -1: none.
  static int AxisOf(const std::vector<int64_t>& axes, size_t i, int rank) {
    int64_t axis = i < axes.size() ? axes[i] : 0;
    if (axis < 0) axis += rank;
    return axis >= 0 && axis < rank ? static_cast<int>(axis) : -1;
  }

  static ValueType Stacked(const ValueType& slice, int axis, const Dim& length) {
    if (!slice.is_tensor()) return {};
    ValueType stacked = slice;
    if (!slice.has_rank || axis < 0) return ElementTypeOnly(slice);
    stacked.dims.insert(stacked.dims.begin() + axis, length);
    return stacked;
  }

  Call Typed(const Node& node, const Graph& body, FactOf known) {
    Call call;
    if (node.Is("Loop")) {
      for (size_t k = 0; k < body.inputs.size() && k < 2; ++k) {
        ValueType type = ValueType::Of(k == 0 ? DType::kInt64 : DType::kBool, Shape{});
        if (body.inputs[k].type.rank() == 1) type.dims = {Dim{1, {}}};
        call.inputs.push_back(type);
      }
      for (size_t k = 2; k < node.inputs.size(); ++k) {
        call.inputs.push_back(TypeOf(node.inputs[k], known));
      }
      const size_t states = node.inputs.size() < 2 ? 0 : node.inputs.size() - 2;
      Settle(body, 2, 1, states, known, &call);
    } else if (node.Is("Scan")) {
      const size_t states = States(node);
      const std::vector<int64_t> axes = node.Ints("scan_input_axes");
      for (size_t k = 0; k < node.inputs.size(); ++k) {
        ValueType type = TypeOf(node.inputs[k], known);
        if (k >= states) type = SliceOf(type, AxisOf(axes, k - states, type.rank()));
        call.inputs.push_back(std::move(type));
      }
      Settle(body, 0, 0, states, known, &call);
    } else {
      for (const std::string& in : node.inputs) {
        const ValueType type = TypeOf(in, known);
        const bool mapped = type.kind == ValueType::Kind::kSequence && type.element != nullptr;
        call.inputs.push_back(mapped ? *type.element : type);
      }
      call.outputs = OfBody(body, call.inputs, known);
    }
    return call;
  }

  static ValueType SliceOf(const ValueType& type, int axis) {
    if (axis < 0) return ElementTypeOnly(type);
    ValueType slice = type;
    slice.dims.erase(slice.dims.begin() + axis);
    return slice;
  }

  // Widens the types of the states until the body leaves what it was given.
  void Settle(const Graph& body, size_t first_in, size_t first_out, size_t states, FactOf known,
              Call* call) {
    for (int round = 1;; ++round) {
      call->outputs = OfBody(body, call->inputs, known);
      if (round > kMaxRounds) return;
      bool settled = true;
      for (size_t k = 0; k < states && first_in + k < call->inputs.size(); ++k) {
        ValueType& state = call->inputs[first_in + k];
        const ValueType left =
            first_out + k < call->outputs.size() ? call->outputs[first_out + k] : ValueType{};
        ValueType joined = left.known() ? JoinTypes(state, left) : ElementTypeOnly(state);
        if (round > kRoundsBeforeForgetting && !(joined == state)) joined = ElementTypeOnly(joined);
        if (round == kMaxRounds) joined = ElementTypeOnly(joined);
        settled = settled && joined == state;
        state = std::move(joined);
      }
      if (settled && round < kMaxRounds) return;
    }
  }

  // Types of the outputs of a body whose inputs have these types.
  Types OfBody(const Graph& body, const Types& inputs, FactOf outer) {
    absl::flat_hash_map<std::string, ValueType> types;
    absl::flat_hash_map<std::string, Tensor> constants;
    for (size_t i = 0; i < body.inputs.size(); ++i) {
      const ValueType declared = ElementTypeOnly(body.inputs[i].type);
      types[body.inputs[i].name] = i < inputs.size() ? MergeTypes(inputs[i], declared) : declared;
    }
    for (const auto& [name, tensor] : body.initializers) {
      types[name] = ValueType::Of(tensor.dtype(), tensor.shape());
      constants.emplace(name, tensor);
    }
    const auto known = [&](const std::string& value) -> InputFact {
      auto type = types.find(value);
      if (type == types.end()) return outer(value);
      auto constant = constants.find(value);
      return {&type->second, constant == constants.end() ? nullptr : &constant->second};
    };
    for (const Node& node : body.nodes) {
      if (--budget_ < 0) break;
      if (std::optional<Tensor> value = ConstantValue(node))
        constants.emplace(node.outputs[0], *value);
      Types found = OfNode(node, known);
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i].empty()) continue;
        const ValueType* declared = body.TypeOf(node.outputs[i]);
        types[node.outputs[i]] =
            declared == nullptr ? found[i] : MergeTypes(found[i], ElementTypeOnly(*declared));
      }
    }
    Types outputs;
    for (const NamedType& out : body.outputs) {
      outputs.push_back(MergeTypes(TypeOf(out.name, known), ElementTypeOnly(out.type)));
    }
    return outputs;
  }

  Types OfNode(const Node& node, FactOf known) {
    if (RunsBodies(node)) return Outputs(node, known);
    std::vector<InputFact> facts(node.inputs.size());
    for (size_t i = 0; i < facts.size(); ++i) {
      if (!node.inputs[i].empty()) facts[i] = known(node.inputs[i]);
    }
    absl::StatusOr<Types> types = operators_.Infer(node, facts, opsets_);
    return types.ok() ? *std::move(types) : Types(node.outputs.size());
  }

  const OperatorSet& operators_;
  const std::map<std::string, int>& opsets_;
  int64_t budget_;
};

}  // namespace

bool RunsBodies(const Node& node) {
  return node.Is("If") || node.Is("Loop") || node.Is("Scan") || node.Is("SequenceMap");
}

std::vector<std::string> CapturedByBodies(const Node& node) {
  std::vector<std::string> captured;
  absl::flat_hash_set<std::string> found;
  ForEachBody(node, [&](const std::string&, const Graph& body) {
    for (std::string& value : CapturedValues(body)) {
      if (found.insert(value).second) captured.push_back(std::move(value));
    }
  });
  return captured;
}

absl::StatusOr<std::vector<ValueType>> InferOutputs(const Node& node, FactOf known,
                                                    const OperatorSet& operators,
                                                    const std::map<std::string, int>& opsets) {
  std::vector<InputFact> facts(node.inputs.size());
  for (size_t i = 0; i < facts.size(); ++i) {
    if (!node.inputs[i].empty()) facts[i] = known(node.inputs[i]);
  }
  ONWARD_ASSIGN_OR_RETURN(std::vector<ValueType> types, operators.Infer(node, facts, opsets));
  if (RunsBodies(node)) types = BodyInference(node, operators, opsets).Outputs(node, known);
  return types;
}

std::vector<ValueType> BodyInputTypes(const Node& node, FactOf known, const OperatorSet& operators,
                                      const std::map<std::string, int>& opsets) {
  return BodyInference(node, operators, opsets).Inputs(node, known);
}

ValueType JoinTypes(const ValueType& a, const ValueType& b) {
  if (a.kind != b.kind) return {};
  ValueType joined;
  joined.kind = a.kind;
  joined.dtype = a.dtype == b.dtype ? a.dtype : DType::kUndefined;
  if (a.element != nullptr && b.element != nullptr) {
    joined.element = std::make_shared<const ValueType>(JoinTypes(*a.element, *b.element));
  }
  if (!a.has_rank || !b.has_rank || a.rank() != b.rank()) return joined;
  joined.has_rank = true;
  for (int i = 0; i < a.rank(); ++i) joined.dims.push_back(JoinDims(a.dims[i], b.dims[i]));
  return joined;
}

}  // namespace onward
