// SPDX-License-Identifier: Apache-2.0
// Raising a graph to newer operator forms with onnx's version converter.
#include <algorithm>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/infer.h"
#include "core/graph/name_scope.h"
#include "core/graph/rename.h"
#include "core/onnx_io/batch_scan.h"
#include "core/onnx_io/model.h"
#include "core/onnx_io/old_forms.h"
#include "core/onnx_io/operators.h"
#include "core/onnx_io/proto.h"
#include "core/onnx_io/runtime_operators.h"
#include "onnx/defs/schema.h"
#include "onnx/version_converter/convert.h"

namespace onward {
namespace {

// Larger initializers do not travel through the converter: they become inputs
// for its time, which costs nothing and loses nothing.
constexpr int64_t kMaxConvertedElements = 1024;
// The only one whose Scan has a batch (batch_scan.h).
constexpr int kBatchScanOpset = 8;
// The last ones with the forms of WithFormsOfOpset10 and of WithScalesOfChannels.
constexpr int kAttributesAsOperandsOpset = 10, kScalesOfGroupsOpset = 20;

bool SameForms(const Graph& graph, int from, int to) {
  for (const Node& node : graph.nodes) {
    if (!node.domain.empty()) continue;
    const onnx::OpSchema* before = onnx::OpSchemaRegistry::Schema(node.op_type, from, "");
    const onnx::OpSchema* after = onnx::OpSchemaRegistry::Schema(node.op_type, to, "");
    if (before == nullptr || after == nullptr || after->deprecated() ||
        before->since_version() != after->since_version()) {
      return false;
    }
    bool same = true;
    ForEachBody(node, [&](const std::string&, const Graph& body) {
      same = same && SameForms(body, from, to);
    });
    if (!same) return false;
  }
  return true;
}

// Axes to put behind those of a node's second operand, so that it is broadcast as from opset 7
// on. Before, a slope of PRelu with one axis goes along the channels, and the second operand of
// a binary operator lies along the axes of the first one from `axis` on.
std::vector<int64_t> AxesBehind(const onnx::NodeProto& node, int first_rank, int second_rank) {
  static const auto* const binary = new absl::flat_hash_set<std::string>{
      "Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less"};
  if (!node.domain().empty() || node.input_size() != 2 || first_rank < 0 || second_rank < 0) {
    return {};
  }
  int64_t begin = -1;
  if (node.op_type() == "PRelu" && first_rank > 2 && second_rank == 1) begin = 1;
  if (binary->contains(node.op_type())) {
    for (const onnx::AttributeProto& a : node.attribute()) {
      if (a.name() == "axis") begin = a.i() < 0 ? a.i() + first_rank : a.i();
    }
  }
  std::vector<int64_t> axes;
  for (int64_t i = begin + second_rank; begin >= 0 && i < first_rank; ++i) {
    axes.push_back(i - begin);
  }
  return axes;
}

void Erase(const char* attribute, onnx::NodeProto* node) {
  auto* list = node->mutable_attribute();
  list->erase(std::remove_if(list->begin(), list->end(),
                             [&](const auto& a) { return a.name() == attribute; }),
              list->end());
}

// Gives second operands these axes. The converter's own way to do so puts them elsewhere.
void SpreadOperands(const Graph& typed, onnx::ModelProto* model) {
  const auto rank = [&](const std::string& value) {
    const ValueType* type = typed.TypeOf(value);
    return type == nullptr ? -1 : type->rank();
  };
  google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes = model->graph().node();
  NameScope names;
  for (const onnx::NodeProto& node : nodes) names.ReserveAll(node.output());
  onnx::GraphProto* graph = model->mutable_graph();
  graph->clear_node();
  for (onnx::NodeProto& node : nodes) {
    const bool two = node.input_size() == 2;
    const std::vector<int64_t> axes =
        two ? AxesBehind(node, rank(node.input(0)), rank(node.input(1))) : std::vector<int64_t>();
    if (!axes.empty()) {
      onnx::NodeProto* wide = graph->add_node();
      wide->set_op_type("Unsqueeze");
      wide->add_input(node.input(1));
      wide->add_output(names.Unique(node.output(0) + "__wide"));
      onnx::AttributeProto* attribute = wide->add_attribute();
      attribute->set_name("axes");
      attribute->set_type(onnx::AttributeProto::INTS);
      for (int64_t axis : axes) attribute->add_ints(axis);
      ValueType type = *typed.TypeOf(node.input(1));
      type.dims.resize(type.dims.size() + axes.size(), Dim{1, {}});
      onnx::ValueInfoProto* info = graph->add_value_info();
      info->set_name(wide->output(0));
      TypeToProto(type, info->mutable_type());
      node.set_input(1, wide->output(0));
      Erase("axis", &node);
    }
    *graph->add_node() = node;
  }
}

template <typename Visit>
void ForEachName(const Graph& graph, const Visit& visit) {
  for (const NamedType& v : graph.inputs) visit(v.name);
  for (const NamedType& v : graph.outputs) visit(v.name);
  for (const auto& [name, tensor] : graph.initializers) visit(name);
  for (const Node& node : graph.nodes) {
    for (const std::string& v : node.inputs) visit(v);
    for (const std::string& v : node.outputs) visit(v);
    ForEachBody(node, [&](const std::string&, const Graph& body) { ForEachName(body, visit); });
  }
}

// The converter names new values without a look at those there are ("_v_3", or an old name
// with a suffix). While it works, the old ones have names that it cannot come upon.
Renaming NeutralNames(const Graph& graph) {
  Renaming neutral;
  ForEachName(graph, [&](const std::string& name) {
    if (!name.empty()) neutral.try_emplace(name, absl::StrCat("value", neutral.size()));
  });
  return neutral;
}

// Back again; what the converter has added keeps its name where that is free.
Renaming OriginalNames(const Renaming& neutral, const Graph& before, const Graph& raised) {
  Renaming original;
  for (const auto& [name, temporary] : neutral) original.emplace(temporary, name);
  NameScope names(before);
  ForEachName(raised, [&](const std::string& name) {
    if (name.empty() || original.contains(name)) return;
    const size_t end = std::min(name.find('_'), name.size());
    original.emplace(name, names.Unique(Renamed(original, name.substr(0, end)) + name.substr(end)));
  });
  return original;
}

onnx::ModelProto Convert(const onnx::ModelProto& model, int from, int to) {
  // Making a converter copies every schema there is, so one serves the process.
  static const auto* converter = new onnx::version_conversion::DefaultVersionConverter;
  return converter->convert_version(model, onnx::OpSetID(from), onnx::OpSetID(to));
}

// Some of the converter's adapters want to know shapes inside the graph, which `typed`
// tells. onnx's own inference over a whole model would trust every attribute of it.
onnx::ModelProto ConvertByShapes(onnx::ModelProto model, const Graph& typed, int from, int to) {
  try {
    return Convert(model, from, to);
  } catch (const std::exception&) {
    auto* infos = model.mutable_graph()->mutable_value_info();
    infos->erase(std::remove_if(infos->begin(), infos->end(),
                                [&](const auto& v) { return typed.TypeOf(v.name()) != nullptr; }),
                 infos->end());
    for (const onnx::NodeProto& node : model.graph().node()) {
      for (const std::string& out : node.output()) {
        const ValueType* type = typed.TypeOf(out);
        if (out.empty() || type == nullptr || !type->known()) continue;
        onnx::ValueInfoProto* info = infos->Add();
        info->set_name(out);
        TypeToProto(*type, info->mutable_type());
      }
    }
    return Convert(model, from, to);
  }
}

}  // namespace

absl::StatusOr<Graph> RaiseOpset(const Graph& graph, int target) {
  const int from = graph.opset();
  if (from == 0 || from >= target) return graph;
  if (SameForms(graph, from, target)) {
    Graph same = graph;
    same.opsets[""] = target;
    return same;
  }
  Graph light = graph;
  light.functions.clear();
  if (from == kBatchScanOpset) DisguiseBatchScans(&light);
  if (from == kAttributesAsOperandsOpset) ReplaceUpsample(&light);
  DisguiseRuntimeOperators(&light);
  absl::btree_map<std::string, Tensor> kept;
  for (const auto& [name, tensor] : graph.initializers) {
    if (tensor.elements() <= kMaxConvertedElements) {
      if (!light.IsInput(name)) continue;
    } else {
      kept.emplace(name, tensor);
      light.initializers.erase(name);
      if (!light.IsInput(name))
        light.inputs.push_back({name, ValueType::Of(tensor.dtype(), tensor.shape())});
    }
  }
  // Before names change: messages speak of the file's.
  Graph typed = light;
  const std::unique_ptr<OperatorSet> operators = MakeOnnxOperators(nullptr);
  ONWARD_RETURN_IF_ERROR(InferKnownTypes(&typed, *operators));
  WidenIntegers(typed, target, &light);
  const Renaming neutral = NeutralNames(light);
  for (Graph* g : {&light, &typed}) RenameEverywhere(neutral, g);
  onnx::ModelProto model = GraphToModelProto(light, 10, "onward");
  Graph raised;
  try {
    if (from < 7) SpreadOperands(typed, &model);
    const onnx::ModelProto converted = ConvertByShapes(std::move(model), typed, from, target);
    ONWARD_ASSIGN_OR_RETURN(raised, GraphFromProto(converted.graph(), nullptr));
  } catch (const std::exception& e) {
    return absl::UnimplementedError(absl::StrCat("the model cannot be raised from opset ", from,
                                                 " to ", target, ": ", e.what()));
  }
  if (from <= kAttributesAsOperandsOpset && target > kAttributesAsOperandsOpset) {
    ONWARD_ASSIGN_OR_RETURN(raised, WithFormsOfOpset10(std::move(raised), typed));
  }
  if (from <= kScalesOfGroupsOpset && target > kScalesOfGroupsOpset) {
    ONWARD_ASSIGN_OR_RETURN(raised, WithScalesOfChannels(std::move(raised), typed));
  }
  RenameEverywhere(OriginalNames(neutral, graph, raised), &raised);
  UndisguiseRuntimeOperators(&raised);
  if (from == kBatchScanOpset) {
    NameScope names(graph);
    names.Reserve(raised);
    ONWARD_RETURN_IF_ERROR(ExpandBatchScans(&names, &raised));
  }
  raised.opsets = graph.opsets;
  raised.opsets[""] = target;
  raised.functions = graph.functions;
  raised.inputs = graph.inputs;
  raised.outputs = graph.outputs;
  raised.name = graph.name;
  raised.metadata = graph.metadata;
  for (auto& [name, tensor] : kept) raised.initializers[name] = std::move(tensor);
  return raised;
}

}  // namespace onward
