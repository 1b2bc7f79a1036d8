// SPDX-License-Identifier: Apache-2.0
// NodeProto, GraphProto and FunctionProto to Onward's values and back.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/onnx_io/proto.h"
#include "core/onnx_io/runtime_operators.h"

namespace onward {

std::string CanonicalDomain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

namespace {

absl::StatusOr<Attribute::Body> BodyFromProto(const onnx::GraphProto& p,
                                              const ExternalData* external) {
  ONWARD_ASSIGN_OR_RETURN(Graph g, GraphFromProto(p, external));
  return std::make_shared<const Graph>(std::move(g));
}

// The list that `read` makes of a repeated field, element by element.
template <typename T, typename Repeated, typename Read>
absl::StatusOr<std::vector<T>> ListFromProto(const Repeated& field, const ExternalData* external,
                                             const Read& read) {
  std::vector<T> list;
  for (const auto& p : field) {
    ONWARD_ASSIGN_OR_RETURN(T item, read(p, external));
    list.push_back(std::move(item));
  }
  return list;
}

absl::StatusOr<Attribute> AttributeFromProto(const onnx::AttributeProto& p,
                                             const ExternalData* external) {
  Attribute a;
  if (!p.ref_attr_name().empty()) {
    a.ref = p.ref_attr_name();
    a.ref_kind = p.type();
    return a;
  }
  switch (p.type()) {
    case onnx::AttributeProto::INT: a.value = static_cast<int64_t>(p.i()); return a;
    case onnx::AttributeProto::FLOAT: a.value = p.f(); return a;
    case onnx::AttributeProto::STRING: a.value = p.s(); return a;
    case onnx::AttributeProto::INTS:
      a.value = std::vector<int64_t>(p.ints().begin(), p.ints().end());
      return a;
    case onnx::AttributeProto::FLOATS:
      a.value = std::vector<float>(p.floats().begin(), p.floats().end());
      return a;
    case onnx::AttributeProto::STRINGS:
      a.value = std::vector<std::string>(p.strings().begin(), p.strings().end());
      return a;
    case onnx::AttributeProto::TENSOR: {
      ONWARD_ASSIGN_OR_RETURN(a.value, TensorFromProto(p.t(), external));
      return a;
    }
    case onnx::AttributeProto::SPARSE_TENSOR: {
      ONWARD_ASSIGN_OR_RETURN(a.value, SparseFromProto(p.sparse_tensor(), external));
      return a;
    }
    case onnx::AttributeProto::GRAPH: {
      ONWARD_ASSIGN_OR_RETURN(a.value, BodyFromProto(p.g(), external));
      return a;
    }
    case onnx::AttributeProto::TENSORS: {
      ONWARD_ASSIGN_OR_RETURN(a.value,
                              ListFromProto<Tensor>(p.tensors(), external, TensorFromProto));
      return a;
    }
    case onnx::AttributeProto::SPARSE_TENSORS: {
      ONWARD_ASSIGN_OR_RETURN(a.value,
                              ListFromProto<Tensor>(p.sparse_tensors(), external, SparseFromProto));
      return a;
    }
    case onnx::AttributeProto::GRAPHS: {
      ONWARD_ASSIGN_OR_RETURN(a.value,
                              ListFromProto<Attribute::Body>(p.graphs(), external, BodyFromProto));
      return a;
    }
    case onnx::AttributeProto::TYPE_PROTO: a.value = TypeFromProto(p.tp()); return a;
    case onnx::AttributeProto::TYPE_PROTOS: {
      std::vector<ValueType> types;
      for (const onnx::TypeProto& t : p.type_protos()) types.push_back(TypeFromProto(t));
      a.value = std::move(types);
      return a;
    }
    case onnx::AttributeProto::UNDEFINED: break;
  }
  return absl::InvalidArgumentError("has no type, or one that this version does not know");
}

void AttributeToProto(const std::string& name, const Attribute& a, onnx::AttributeProto* p,
                      Weights* held) {
  p->set_name(name);
  if (!a.ref.empty()) {
    p->set_ref_attr_name(a.ref);
    p->set_type(static_cast<onnx::AttributeProto::AttributeType>(a.ref_kind));
    return;
  }
  struct Visitor {
    onnx::AttributeProto* p;
    Weights* held;
    void operator()(int64_t v) {
      p->set_type(onnx::AttributeProto::INT);
      p->set_i(v);
    }
    void operator()(float v) {
      p->set_type(onnx::AttributeProto::FLOAT);
      p->set_f(v);
    }
    void operator()(const std::string& v) {
      p->set_type(onnx::AttributeProto::STRING);
      p->set_s(v);
    }
    void operator()(const Tensor& v) {
      p->set_type(onnx::AttributeProto::TENSOR);
      TensorToProto(v, "", p->mutable_t(), held);
    }
    void operator()(const Attribute::Body& v) {
      p->set_type(onnx::AttributeProto::GRAPH);
      GraphToProto(*v, p->mutable_g(), held);
    }
    void operator()(const ValueType& v) {
      p->set_type(onnx::AttributeProto::TYPE_PROTO);
      TypeToProto(v, p->mutable_tp());
    }
    void operator()(const std::vector<Tensor>& v) {
      p->set_type(onnx::AttributeProto::TENSORS);
      for (const Tensor& t : v) TensorToProto(t, "", p->add_tensors(), held);
    }
    void operator()(const std::vector<Attribute::Body>& v) {
      p->set_type(onnx::AttributeProto::GRAPHS);
      for (const Attribute::Body& g : v) GraphToProto(*g, p->add_graphs(), held);
    }
    void operator()(const std::vector<ValueType>& v) {
      p->set_type(onnx::AttributeProto::TYPE_PROTOS);
      for (const ValueType& t : v) TypeToProto(t, p->add_type_protos());
    }
    void operator()(const std::vector<int64_t>& v) {
      p->set_type(onnx::AttributeProto::INTS);
      for (int64_t x : v) p->add_ints(x);
    }
    void operator()(const std::vector<float>& v) {
      p->set_type(onnx::AttributeProto::FLOATS);
      for (float x : v) p->add_floats(x);
    }
    void operator()(const std::vector<std::string>& v) {
      p->set_type(onnx::AttributeProto::STRINGS);
      for (const std::string& x : v) p->add_strings(x);
    }
  };
  std::visit(Visitor{p, held}, a.value);
}

// TypeProto.Tensor and TypeProto.SparseTensor have the same fields.
template <typename TensorType>
ValueType TensorTypeFromProto(ValueType::Kind kind, const TensorType& p) {
  ValueType t;
  t.kind = kind;
  t.dtype = static_cast<DType>(p.elem_type());
  if (!p.has_shape()) return t;
  t.has_rank = true;
  for (const auto& d : p.shape().dim()) {
    Dim dim;
    if (d.has_dim_value() && d.dim_value() >= 0) dim.value = d.dim_value();
    if (d.has_dim_param()) dim.symbol = d.dim_param();
    t.dims.push_back(std::move(dim));
  }
  return t;
}

template <typename TensorType>
void TensorTypeToProto(const ValueType& type, TensorType* p) {
  p->set_elem_type(static_cast<int32_t>(type.dtype));
  if (!type.has_rank) return;
  auto* shape = p->mutable_shape();
  for (const Dim& d : type.dims) {
    auto* dim = shape->add_dim();
    if (d.known()) {
      dim->set_dim_value(d.value);
    } else if (!d.symbol.empty()) {
      dim->set_dim_param(d.symbol);
    }
  }
}

void AddValueInfo(const std::string& name, const ValueType& type, const Graph& graph,
                  onnx::ValueInfoProto* p) {
  p->set_name(name);
  if (type.known()) TypeToProto(type, p->mutable_type());
  auto metadata = graph.metadata.find(name);
  if (metadata == graph.metadata.end()) return;
  for (const auto& [key, value] : metadata->second) {
    auto* entry = p->add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  }
}

// ValueInfoProto and TensorProto.
template <typename Proto>
void ReadMetadata(const Proto& p, Graph* graph) {
  for (const auto& entry : p.metadata_props())
    graph->metadata[p.name()][entry.key()] = entry.value();
}

}  // namespace

ValueType TypeFromProto(const onnx::TypeProto& p) {
  using Kind = ValueType::Kind;
  switch (p.value_case()) {
    case onnx::TypeProto::kTensorType: return TensorTypeFromProto(Kind::kTensor, p.tensor_type());
    case onnx::TypeProto::kSparseTensorType:
      return TensorTypeFromProto(Kind::kSparse, p.sparse_tensor_type());
    case onnx::TypeProto::kSequenceType:
      return ValueType::Holding(Kind::kSequence, TypeFromProto(p.sequence_type().elem_type()));
    case onnx::TypeProto::kOptionalType:
      return ValueType::Holding(Kind::kOptional, TypeFromProto(p.optional_type().elem_type()));
    case onnx::TypeProto::kMapType: {
      ValueType t = ValueType::Holding(Kind::kMap, TypeFromProto(p.map_type().value_type()));
      t.dtype = static_cast<DType>(p.map_type().key_type());
      return t;
    }
    default: return {};
  }
}

void TypeToProto(const ValueType& type, onnx::TypeProto* p) {
  // Visits what a container holds, where that is known.
  const auto held = [&](onnx::TypeProto* element) {
    if (type.element != nullptr && type.element->known()) TypeToProto(*type.element, element);
  };
  switch (type.kind) {
    case ValueType::Kind::kTensor: return TensorTypeToProto(type, p->mutable_tensor_type());
    case ValueType::Kind::kSparse: return TensorTypeToProto(type, p->mutable_sparse_tensor_type());
    case ValueType::Kind::kSequence: return held(p->mutable_sequence_type()->mutable_elem_type());
    case ValueType::Kind::kOptional: return held(p->mutable_optional_type()->mutable_elem_type());
    case ValueType::Kind::kMap:
      p->mutable_map_type()->set_key_type(static_cast<int32_t>(type.dtype));
      return held(p->mutable_map_type()->mutable_value_type());
  }
}

absl::StatusOr<Node> NodeFromProto(const onnx::NodeProto& p, const ExternalData* external) {
  Node node;
  node.op_type = p.op_type();
  node.domain = CanonicalDomain(p.domain());
  node.name = p.name();
  node.overload = p.overload();
  node.inputs.assign(p.input().begin(), p.input().end());
  node.outputs.assign(p.output().begin(), p.output().end());
  for (const onnx::AttributeProto& a : p.attribute()) {
    auto attribute = AttributeFromProto(a, external);
    if (!attribute.ok()) {
      return Annotate(attribute.status(),
                      absl::StrCat(node.Describe(), ", attribute '", a.name(), "'"));
    }
    if (!node.attributes.emplace(a.name(), *std::move(attribute)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(node.Describe(), ": attribute '", a.name(), "' is given twice"));
    }
  }
  // A sparse constant has been made dense; from here on it is an ordinary one.
  if (node.Is("Constant") && node.Has("sparse_value")) {
    auto handle = node.attributes.extract("sparse_value");
    node.attributes["value"] = handle.mapped();
  }
  return node;
}

void NodeToProto(const Node& node, onnx::NodeProto* p, Weights* held) {
  p->set_op_type(node.op_type);
  if (!node.domain.empty() && !IsWrittenAsStandard(node)) p->set_domain(node.domain);
  if (!node.name.empty()) p->set_name(node.name);
  if (!node.overload.empty()) p->set_overload(node.overload);
  for (const std::string& v : node.inputs) p->add_input(v);
  for (const std::string& v : node.outputs) p->add_output(v);
  for (const auto& [name, a] : node.attributes) AttributeToProto(name, a, p->add_attribute(), held);
}

absl::StatusOr<Graph> GraphFromProto(const onnx::GraphProto& p, const ExternalData* external) {
  Graph g;
  g.name = p.name();
  for (const auto& v : p.value_info()) {
    g.types[v.name()] = TypeFromProto(v.type());
    ReadMetadata(v, &g);
  }
  auto read_values = [&](const auto& from, std::vector<NamedType>* to) {
    for (const auto& v : from) {
      to->push_back({v.name(), TypeFromProto(v.type())});
      g.types[v.name()] = to->back().type;
      ReadMetadata(v, &g);
    }
  };
  read_values(p.input(), &g.inputs);
  read_values(p.output(), &g.outputs);
  auto add = [&](const std::string& name, Tensor t) {
    g.types[name] = ValueType::Of(t.dtype(), t.shape());
    return g.initializers.emplace(name, std::move(t)).second
               ? absl::OkStatus()
               : absl::InvalidArgumentError(
                     absl::StrCat("initializer '", name, "' is given twice"));
  };
  for (const auto& t : p.initializer()) {
    if (t.name().empty()) return absl::InvalidArgumentError("an initializer has no name");
    ONWARD_ASSIGN_OR_RETURN(Tensor tensor, TensorFromProto(t, external));
    ONWARD_RETURN_IF_ERROR(add(t.name(), std::move(tensor)));
    ReadMetadata(t, &g);
  }
  for (const auto& s : p.sparse_initializer()) {
    if (s.values().name().empty())
      return absl::InvalidArgumentError("a sparse initializer has no name");
    ONWARD_ASSIGN_OR_RETURN(Tensor tensor, SparseFromProto(s, external));
    ONWARD_RETURN_IF_ERROR(add(s.values().name(), std::move(tensor)));
  }
  for (const auto& n : p.node()) {
    ONWARD_ASSIGN_OR_RETURN(Node node, NodeFromProto(n, external));
    g.nodes.push_back(std::move(node));
  }
  return g;
}

void GraphToProto(const Graph& graph, onnx::GraphProto* p, Weights* held) {
  p->set_name(graph.name.empty() ? "graph" : graph.name);
  for (const NamedType& v : graph.inputs) AddValueInfo(v.name, v.type, graph, p->add_input());
  for (const NamedType& v : graph.outputs) AddValueInfo(v.name, v.type, graph, p->add_output());
  for (const auto& [name, tensor] : graph.initializers) {
    TensorToProto(tensor, name, p->add_initializer(), held);
    if (graph.metadata.contains(name) && !graph.IsInput(name) && !graph.IsOutput(name)) {
      AddValueInfo(name, ValueType::Of(tensor.dtype(), tensor.shape()), graph, p->add_value_info());
    }
  }
  absl::flat_hash_set<std::string> outputs;
  for (const NamedType& v : graph.outputs) outputs.insert(v.name);
  for (const Node& node : graph.nodes) {
    NodeToProto(node, p->add_node(), held);
    for (const std::string& out : node.outputs) {
      const ValueType* type = out.empty() ? nullptr : graph.TypeOf(out);
      if (type != nullptr && type->known() && !outputs.contains(out)) {
        AddValueInfo(out, *type, graph, p->add_value_info());
      }
    }
  }
}

absl::StatusOr<Function> FunctionFromProto(const onnx::FunctionProto& p,
                                           const ExternalData* external) {
  Function f;
  f.body.name = p.name();
  for (const std::string& v : p.input()) f.body.inputs.push_back({v, {}});
  for (const std::string& v : p.output()) f.body.outputs.push_back({v, {}});
  for (const auto& o : p.opset_import()) {
    int& version = f.body.opsets[CanonicalDomain(o.domain())];
    version = std::max(version, static_cast<int>(o.version()));  // as Model::opsets
  }
  f.required_attributes.assign(p.attribute().begin(), p.attribute().end());
  for (const auto& a : p.attribute_proto()) {
    ONWARD_ASSIGN_OR_RETURN(Attribute value, AttributeFromProto(a, external));
    f.default_attributes.emplace(a.name(), std::move(value));
  }
  for (const auto& n : p.node()) {
    ONWARD_ASSIGN_OR_RETURN(Node node, NodeFromProto(n, external));
    f.body.nodes.push_back(std::move(node));
  }
  return f;
}

void FunctionToProto(const FunctionKey& key, const Function& function, onnx::FunctionProto* p,
                     Weights* held) {
  p->set_name(key.name);
  p->set_domain(key.domain);
  if (!key.overload.empty()) p->set_overload(key.overload);
  for (const NamedType& v : function.body.inputs) p->add_input(v.name);
  for (const NamedType& v : function.body.outputs) p->add_output(v.name);
  for (const auto& [domain, version] : function.body.opsets) {
    auto* o = p->add_opset_import();
    o->set_domain(domain);
    o->set_version(version);
  }
  for (const std::string& a : function.required_attributes) p->add_attribute(a);
  for (const auto& [name, a] : function.default_attributes)
    AttributeToProto(name, a, p->add_attribute_proto(), held);
  for (const Node& node : function.body.nodes) NodeToProto(node, p->add_node(), held);
}

}  // namespace onward
