// SPDX-License-Identifier: Apache-2.0
#include "core/onnx_io/operators.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <exception>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "core/graph/attribute_lists.h"
#include "core/graph/constraints/constraints.h"
#include "core/graph/einsum_equation.h"
#include "core/graph/infer.h"
#include "core/graph/inline.h"
#include "core/onnx_io/ml_types.h"
#include "core/onnx_io/model.h"
#include "core/onnx_io/operand_types.h"
#include "core/onnx_io/proto.h"
#include "onnx/defs/function.h"
#include "onnx/defs/schema.h"
#include "onnx/defs/shape_inference.h"

namespace onward {
namespace {

// Constants above this size never decide a shape.
constexpr int64_t kMaxConstantElements = 4096;
// As CheckedElements has it.
constexpr int64_t kMaxAxes = 32;
// builder.h
constexpr int kOldestBodyOpset = 18;

const onnx::OpSchema* FindSchema(const Node& node, const std::map<std::string, int>& opsets) {
  auto it = opsets.find(node.domain);
  const int version = it != opsets.end() ? it->second : node.domain.empty() ? kCanonicalOpset : 1;
  return onnx::OpSchemaRegistry::Schema(node.op_type, version, node.domain);
}

// Domains beside ai.onnx whose operators the standard defines: schemas say what is valid, the
// library only adds bodies.
bool OfTheStandard(const std::string& domain) {
  return domain == kTrainingDomain || domain == kMlDomain;
}

// onnx's inference makes as many axes as a list of dimensions is declared to
// have, however many that is.
void AddListedDimensions(const Node& node, absl::Span<const InputFact> inputs,
                         std::vector<std::string>* broken) {
  const size_t at = node.Is("ConstantOfShape") ? 0 : node.Is("Resize") ? 3 : 1;
  if (!(node.Is("ConstantOfShape") || node.Is("Resize") || node.Is("Expand") ||
        node.Is("Reshape") || node.Is("AffineGrid")) ||
      at >= inputs.size() || inputs[at].type == nullptr) {
    return;
  }
  const ValueType& list = *inputs[at].type;
  if (list.rank() != 1 || list.dims[0].value <= kMaxAxes) return;
  broken->push_back(absl::StrCat("input ", at, " lists ", list.dims[0].value,
                                 " dimensions; at most ", kMaxAxes, " are supported"));
}

// Declared shapes need not be ones that a tensor can have; from here on they are.
std::vector<std::string> ImpossibleShapes(absl::Span<const InputFact> inputs) {
  std::vector<std::string> broken;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].type == nullptr || !inputs[i].type->has_rank) continue;
    Shape known;
    for (const Dim& dim : inputs[i].type->dims) known.push_back(std::max<int64_t>(dim.value, 1));
    if (absl::Status s = CheckedElements(known.dims()).status(); !s.ok()) {
      broken.push_back(absl::StrCat("input ", i, ": ", s.message()));
    }
  }
  return broken;
}

// Operands in a form that onnx's inference takes. Range has scalars, but the standard's own
// bodies (AffineGrid) give it vectors of one element; the axes of Pad may be of 32 bits, but are
// read as 64.
class AcceptedInputs {
 public:
  AcceptedInputs(const Node& node, absl::Span<const InputFact> inputs)
      : facts_(inputs.begin(), inputs.end()), types_(inputs.size()), values_(inputs.size()) {
    constexpr size_t kAxesOfPad = 3;
    for (size_t i = 0; i < facts_.size(); ++i) {
      const Tensor* value = facts_[i].constant;
      if (value == nullptr) continue;
      if (node.Is("Range") && value->elements() == 1) {
        Take(i, value->Reshaped({}));
      } else if (node.Is("Pad") && i == kAxesOfPad && value->elements() <= kMaxAxes) {
        const absl::StatusOr<std::vector<int64_t>> axes = ToInts(*value);
        if (axes.ok()) Take(i, Tensor::FromValues<int64_t>(value->shape(), *axes));
      }
    }
  }
  absl::Span<const InputFact> facts() const { return facts_; }

 private:
  void Take(size_t i, Tensor value) {
    values_[i] = std::move(value);
    types_[i] = ValueType::Of(values_[i].dtype(), values_[i].shape());
    facts_[i] = {&types_[i], &values_[i]};
  }

  std::vector<InputFact> facts_;
  std::vector<ValueType> types_;
  std::vector<Tensor> values_;
};

class NodeContext : public onnx::InferenceContext {
 public:
  NodeContext(const Node& node, absl::Span<const InputFact> inputs)
      : inputs_(inputs.size()), data_(inputs.size()), outputs_(node.outputs.size()) {
    NodeToProto(node, &proto_);
    for (const auto& a : proto_.attribute()) attributes_[a.name()] = &a;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].type != nullptr && inputs[i].type->known()) {
        inputs_[i].emplace();
        TypeToProto(*inputs[i].type, &*inputs_[i]);
      }
      const Tensor* c = inputs[i].constant;
      if (c != nullptr && c->elements() <= kMaxConstantElements) {
        data_[i].emplace();
        TensorToProto(*c, "", &*data_[i]);
      }
    }
  }

  const onnx::NodeProto& node() const { return proto_; }
  std::vector<onnx::TypeProto> input_types() const {
    std::vector<onnx::TypeProto> types;
    for (const auto& t : inputs_) types.push_back(t.value_or(onnx::TypeProto()));
    return types;
  }
  const onnx::AttributeProto* getAttribute(const std::string& name) const override {
    auto it = attributes_.find(name);
    return it == attributes_.end() ? nullptr : it->second;
  }
  size_t getNumInputs() const override { return inputs_.size(); }
  const onnx::TypeProto* getInputType(size_t i) const override {
    return i < inputs_.size() && inputs_[i].has_value() ? &*inputs_[i] : nullptr;
  }
  const onnx::TensorProto* getInputData(size_t i) const override {
    return i < data_.size() && data_[i].has_value() ? &*data_[i] : nullptr;
  }
  const onnx::SparseTensorProto* getInputSparseData(size_t) const override { return nullptr; }
  const onnx::TensorShapeProto* getSymbolicInput(size_t) const override { return nullptr; }
  size_t getNumOutputs() const override { return static_cast<size_t>(proto_.output_size()); }
  bool hasOutput(size_t i) override {
    return i < getNumOutputs() && !proto_.output(static_cast<int>(i)).empty();
  }
  // Some operators type outputs that the node does not have.
  onnx::TypeProto* getOutputType(size_t i) override {
    while (i >= outputs_.size()) outputs_.emplace_back();
    return &outputs_[i];
  }
  onnx::GraphInferencer* getGraphAttributeInferencer(const std::string&) override {
    return nullptr;
  }

 private:
  onnx::NodeProto proto_;
  std::map<std::string, const onnx::AttributeProto*> attributes_;
  std::vector<std::optional<onnx::TypeProto>> inputs_;
  std::vector<std::optional<onnx::TensorProto>> data_;
  std::deque<onnx::TypeProto> outputs_;  // grows without moving
};

class OnnxOperators : public OperatorSet {
 public:
  explicit OnnxOperators(const FunctionLibrary* library) : library_(library) {}

  absl::StatusOr<std::vector<ValueType>> Infer(
      const Node& node, absl::Span<const InputFact> inputs,
      const std::map<std::string, int>& opsets) const override {
    ONWARD_RETURN_IF_ERROR(Refuse(node, BrokenDemands(node, inputs, opsets)));
    if (node.domain == kOnwardDomain || Own(node, opsets) != nullptr) {
      return InferOwn(node, inputs, opsets);
    }
    std::vector<ValueType> types(node.outputs.size());
    if (node.Is("Gradient", kTrainingDomain)) {
      for (size_t i = 0; i < types.size() && i < inputs.size(); ++i) types[i] = TypeAt(inputs, i);
      return types;
    }
    if (node.Is("Einsum")) return InferEinsum(node, inputs);
    // Bodies are inferred when they run; here their outputs are unknown.
    for (const char* op : {"If", "Loop", "Scan", "SequenceMap"}) {
      if (node.Is(op)) return types;
    }
    const onnx::OpSchema* schema = FindSchema(node, opsets);
    if (schema == nullptr) return types;
    const bool picky = node.Is("Range") || node.Is("Pad");
    const AcceptedInputs accepted(node, picky ? inputs : absl::Span<const InputFact>());
    // Without the attribute onnx infers two sides, where its schema says one.
    std::optional<Node> completed;
    if (node.Is("STFT") && !node.Has("onesided")) {
      completed = node;
      completed->attributes["onesided"] = 1;
    }
    NodeContext context(completed ? *completed : node, picky ? accepted.facts() : inputs);
    try {
      schema->GetTypeAndShapeInferenceFunction()(context);
    } catch (const std::exception& e) {
      // After If, Loop or Scan types are unknown, which onnx takes for an error.
      if (HasUntypedInput(node, inputs)) return types;
      return absl::InvalidArgumentError(absl::StrCat(node.Describe(), ": ", e.what()));
    }
    for (size_t i = 0; i < types.size(); ++i) types[i] = TypeFromProto(*context.getOutputType(i));
    ONWARD_RETURN_IF_ERROR(Refuse(node, BrokenResults(*schema, node, types)));
    CompleteTypes(node, inputs, &types);
    return types;
  }

  std::vector<std::string> BrokenDemands(const Node& node, absl::Span<const InputFact> inputs,
                                         const std::map<std::string, int>& opsets) const override {
    if (std::vector<std::string> impossible = ImpossibleShapes(inputs); !impossible.empty()) {
      return impossible;
    }
    if (const FunctionDef* def = Own(node, opsets)) {
      std::string problem = FunctionLibrary::BrokenDemand(*def, node, inputs);
      return problem.empty() ? std::vector<std::string>() : std::vector{std::move(problem)};
    }
    const onnx::OpSchema* schema = FindSchema(node, opsets);
    if (schema == nullptr) return {};
    std::vector<std::string> broken = BrokenOperands(*schema, node, inputs);
    for (std::string& what : BrokenConstraints(node, inputs, schema->since_version())) {
      broken.push_back(std::move(what));
    }
    AddListedDimensions(node, inputs, &broken);
    return broken;
  }

  absl::StatusOr<std::optional<Function>> FunctionBody(
      const Node& node, absl::Span<const InputFact> inputs,
      const std::map<std::string, int>& opsets) const override {
    ONWARD_RETURN_IF_ERROR(Refuse(node, BrokenDemands(node, inputs, opsets)));
    // The standard's optimizers and models have no bodies there; the library has.
    const FunctionDef* def = OfTheStandard(node.domain) ? Find(node, opsets) : Own(node, opsets);
    if (def != nullptr && def->function != nullptr) {
      return BodyForCall(*def->function, node, opsets);
    }
    const bool ours = node.domain == kOnwardDomain;  // a call of its own that has none is an error
    if (def != nullptr && (def->body || ours)) {
      return LibraryBody(node, inputs, opsets);
    }
    const onnx::OpSchema* schema = FindSchema(node, opsets);
    if (schema == nullptr) return std::optional<Function>();
    // Constants of the standard's own bodies are floats.
    const bool has_body = schema->HasFunction() || schema->HasContextDependentFunction();
    if (StandardBody(node) && (!has_body || TypeAt(inputs, 0).dtype != DType::kFloat)) {
      return LibraryBody(node, inputs, opsets);
    }
    try {
      return SchemaBody(*schema, node, inputs, opsets);
    } catch (const std::exception& e) {
      return absl::InvalidArgumentError(absl::StrCat(node.Describe(), ": ", e.what()));
    }
  }

  bool ShapeOnly(const Node& node, int input) const override {
    if (node.domain.empty()) return node.op_type == "Shape" || node.op_type == "Size";
    if (node.domain != kOnwardDomain || library_ == nullptr) return false;
    const FunctionDef* def = library_->Find(node);
    return def != nullptr && std::find(def->shape_only.begin(), def->shape_only.end(), input) !=
                                 def->shape_only.end();
  }

  const FunctionTraits* Traits(const Node& node) const override {
    if (node.domain.empty() || library_ == nullptr) return nullptr;
    const FunctionDef* def = library_->Find(node);
    return def == nullptr ? nullptr : &def->traits;
  }

  int SinceVersion(const Node& node, const std::map<std::string, int>& opsets) const override {
    const onnx::OpSchema* schema = FindSchema(node, opsets);
    if (schema != nullptr) return schema->since_version();
    const FunctionDef* def = Find(node, opsets);
    return def == nullptr ? 0 : def->since;
  }

 private:
  // What the library says of the operator, at the version that is imported.
  const FunctionDef* Find(const Node& node, const std::map<std::string, int>& opsets) const {
    if (node.domain.empty() || library_ == nullptr) return nullptr;
    const FunctionDef* def = library_->Find(node);
    if (def == nullptr || def->since <= 1) return def;
    auto it = opsets.find(node.domain);
    return it == opsets.end() || it->second < def->since ? nullptr : def;
  }
  // The same, where no schema has a say.
  const FunctionDef* Own(const Node& node, const std::map<std::string, int>& opsets) const {
    return OfTheStandard(node.domain) ? nullptr : Find(node, opsets);
  }

  // Whether the library has a body for an operator of the standard, which gives none or one
  // that is of float alone.
  bool StandardBody(const Node& node) const {
    return node.domain.empty() && library_ != nullptr && library_->Find(node) != nullptr;
  }

  absl::StatusOr<std::optional<Function>> LibraryBody(
      const Node& node, absl::Span<const InputFact> inputs,
      const std::map<std::string, int>& opsets) const {
    ONWARD_ASSIGN_OR_RETURN(Graph body,
                            library_->Instantiate(node, inputs, this, BodyOpset(opsets)));
    return Function{std::move(body), {}, {}};
  }

  static ValueType TypeAt(absl::Span<const InputFact> inputs, size_t i) {
    return i < inputs.size() && inputs[i].type != nullptr ? *inputs[i].type : ValueType{};
  }

  static absl::Status Refuse(const Node& node, const std::vector<std::string>& broken) {
    if (broken.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(node.Describe(), ": ", absl::StrJoin(broken, "; "), "; fix: ", kMendNode));
  }

  // Bodies are written in forms of opset 18 and later; a model on its way there is typed too.
  static int BodyOpset(const std::map<std::string, int>& opsets) {
    auto it = opsets.find("");
    return it == opsets.end() ? kCanonicalOpset : std::max(it->second, kOldestBodyOpset);
  }

  static bool HasUnrankedInput(const Node& node, absl::Span<const InputFact> inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (node.HasInput(static_cast<int>(i)) && !TypeAt(inputs, i).has_rank) return true;
    }
    return false;
  }

  static bool HasUntypedInput(const Node& node, absl::Span<const InputFact> inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (node.HasInput(static_cast<int>(i)) && !TypeAt(inputs, i).known()) return true;
    }
    return false;
  }

  // onnx's own inference wants ellipses of as many axes in every operand.
  static absl::StatusOr<std::vector<ValueType>> InferEinsum(const Node& node,
                                                            absl::Span<const InputFact> inputs) {
    std::vector<ValueType> operands;
    for (size_t i = 0; i < inputs.size(); ++i) operands.push_back(TypeAt(inputs, i));
    const absl::StatusOr<EinsumEquation> equation = ParseEinsum(node.String("equation", ""));
    if (!equation.ok()) return Annotate(equation.status(), node.Describe());
    absl::StatusOr<ValueType> type = EinsumType(*equation, operands);
    if (!type.ok()) return Annotate(type.status(), node.Describe());
    return std::vector<ValueType>{*std::move(type)};
  }

  absl::StatusOr<std::vector<ValueType>> InferOwn(const Node& node,
                                                  absl::Span<const InputFact> inputs,
                                                  const std::map<std::string, int>& opsets) const {
    std::vector<ValueType> types(node.outputs.size());
    const FunctionDef* def = Own(node, opsets);
    if (def == nullptr) return types;
    if (def->types) {
      ONWARD_ASSIGN_OR_RETURN(types, def->types(node, inputs, *this, opsets));
      types.resize(node.outputs.size());
      return types;
    }
    bool complete = true;
    for (size_t i = 0; i < types.size(); ++i) {
      const int like = i < def->output_like.size() ? def->output_like[i] : -1;
      if (like >= 0) types[i] = TypeAt(inputs, like);
      complete &= like >= 0 || node.outputs[i].empty();
    }
    if (complete) return types;
    if (def->function != nullptr) return InferThrough(*def->function, node, inputs, opsets);
    const absl::StatusOr<Graph> body = library_->Instantiate(node, inputs, this, BodyOpset(opsets));
    if (!body.ok()) {
      // A body may need ranks that are not known yet.
      if (HasUnrankedInput(node, inputs)) return types;
      return body.status();
    }
    for (size_t i = 0; i < types.size() && i < body->outputs.size(); ++i) {
      if (!types[i].known()) types[i] = body->outputs[i].type;
    }
    return types;
  }

  absl::StatusOr<std::vector<ValueType>> InferThrough(
      const Function& function, const Node& node, absl::Span<const InputFact> inputs,
      const std::map<std::string, int>& opsets) const {
    ONWARD_ASSIGN_OR_RETURN(Function called, BodyForCall(function, node, opsets));
    ResolveAttributes(node, &called);
    Graph& body = called.body;
    for (size_t i = 0; i < body.inputs.size(); ++i) {
      body.inputs[i].type = body.types[body.inputs[i].name] = TypeAt(inputs, i);
    }
    if (absl::Status s = InferTypes(&body, *this); !s.ok()) return Annotate(s, node.Describe());
    std::vector<ValueType> types(node.outputs.size());
    for (size_t i = 0; i < types.size() && i < body.outputs.size(); ++i) {
      if (const ValueType* type = body.TypeOf(body.outputs[i].name)) types[i] = *type;
    }
    return types;
  }

  // The function with the attributes of this call, in the operator forms of these opsets.
  static absl::StatusOr<Function> BodyForCall(Function function, const Node& node,
                                              const std::map<std::string, int>& opsets) {
    auto target = opsets.find("");
    if (target != opsets.end() && function.body.opset() != 0 &&
        function.body.opset() < target->second) {
      // The converter reads attributes (axes that became inputs) and cannot see
      // through references.
      ResolveAttributes(node, &function);
      ONWARD_ASSIGN_OR_RETURN(function.body, RaiseOpset(function.body, target->second));
    }
    return function;
  }

  // Sizes are products in float, as onnxruntime and the kernel have them: 5 * 1.4 is 7 there.
  // onnx multiplies in double, which gives 6, because the float 1.4 is a bit less than that.
  static void CompleteResize(const Node& node, absl::Span<const InputFact> inputs, ValueType* out) {
    const size_t at = inputs.size() == 2 ? 1 : 2;  // opset 10 has no regions before the scales
    const ValueType in = TypeAt(inputs, 0);
    if (at >= inputs.size() || inputs[at].constant == nullptr || in.rank() != out->rank() ||
        node.String("coordinate_transformation_mode", "") == "tf_crop_and_resize") {
      return;
    }
    const absl::StatusOr<std::vector<double>> scales = ToDoubles(*inputs[at].constant);
    for (size_t i = 0; scales.ok() && i < scales->size(); ++i) {
      const std::vector<int64_t> axes = node.Ints("axes");
      const int64_t listed = i < axes.size() ? axes[i] : static_cast<int64_t>(i);
      const absl::StatusOr<int> axis = NormalizeAxis(listed, in.rank());
      if (!axis.ok() || !in.dims[*axis].known() || !out->dims[*axis].known()) continue;
      const float size =
          std::floor(static_cast<float>(in.dims[*axis].value) * static_cast<float>((*scales)[i]));
      if (size < 0x1p48f) out->dims[*axis].value = static_cast<int64_t>(size);
    }
  }

  // What onnx's own inference leaves open although it is certain.
  static void CompleteTypes(const Node& node, absl::Span<const InputFact> inputs,
                            std::vector<ValueType>* types) {
    if (types->empty()) return;
    if (node.domain == kMlDomain) return CompleteMlTypes(node, inputs, types);
    ValueType& out = (*types)[0];
    if (node.Is("GroupNormalization")) out = TypeAt(inputs, 0);
    if (node.Is("Resize")) CompleteResize(node, inputs, &out);
    // onnx's inference stops at an axis that is smaller than the input's.
    const std::vector<int64_t> sizes = node.Ints("output_shape");
    const int rank = static_cast<int>(sizes.size()) + 2;
    if (node.Is("ConvTranspose") && !sizes.empty() && out.has_rank && out.rank() < rank) {
      out.dims.resize(2);
      for (int64_t size : sizes) out.dims.push_back({size, ""});
    }
    // [batch, frames, bins, real and imaginary part]
    if (node.Is("STFT") && !out.has_rank) {
      out.has_rank = true;
      out.dims = {{}, {}, {}, {2, ""}};
    }
    const int shape_input = node.Is("Reshape") ? 1 : node.Is("ConstantOfShape") ? 0 : -1;
    if (shape_input >= 0 && !out.has_rank && shape_input < static_cast<int>(inputs.size())) {
      const ValueType shape = TypeAt(inputs, shape_input);
      if (shape.rank() == 1 && shape.dims[0].known()) {
        out.has_rank = true;
        out.dims.assign(shape.dims[0].value, Dim{});
      }
    }
  }

  // The rank that an operator demands of its first input, where its body is built by it; -1 where
  // there are several.
  static int DemandedRank(const Node& node) {
    if (node.Is("CausalConvWithState")) return 3;
    return node.Is("RotaryEmbedding") && node.Int("num_heads", 0) == 0 ? 4 : -1;
  }

  static absl::StatusOr<std::optional<Function>> SchemaBody(
      const onnx::OpSchema& schema, const Node& node, absl::Span<const InputFact> inputs,
      const std::map<std::string, int>& opsets) {
    auto it = opsets.find(node.domain);
    const int version = it == opsets.end() ? kCanonicalOpset : it->second;
    onnx::FunctionProto proto;
    if (schema.HasFunction()) {
      const onnx::FunctionProto* body = schema.GetFunction(version);
      if (body == nullptr) body = schema.GetFunction();
      if (body == nullptr) return std::optional<Function>();
      proto = *body;
    } else if (schema.HasContextDependentFunction()) {
      std::vector<InputFact> ranked(inputs.begin(), inputs.end());
      ValueType first = TypeAt(inputs, 0);
      if (first.known() && !first.has_rank && DemandedRank(node) > 0) {
        first.has_rank = true;
        first.dims.assign(DemandedRank(node), Dim{});
        ranked[0].type = &first;
      }
      NodeContext context(node, ranked);
      onnx::FunctionBodyBuildContextImpl build(context.node(), context.input_types());
      if (!schema.BuildContextDependentFunction(build, proto, version) &&
          !schema.BuildContextDependentFunction(build, proto)) {
        return std::optional<Function>();
      }
    } else {
      return std::optional<Function>();
    }
    ONWARD_ASSIGN_OR_RETURN(Function function, FunctionFromProto(proto, nullptr));
    // Attributes that the call leaves out take the schema's defaults.
    for (const auto& [name, attribute] : schema.attributes()) {
      if (attribute.default_value.type() == onnx::AttributeProto::UNDEFINED) continue;
      onnx::NodeProto holder;
      *holder.add_attribute() = attribute.default_value;
      holder.mutable_attribute(0)->set_name(name);
      ONWARD_ASSIGN_OR_RETURN(Node parsed, NodeFromProto(holder, nullptr));
      for (auto& [n, a] : parsed.attributes) function.default_attributes.emplace(n, a);
    }
    return BodyForCall(std::move(function), node, opsets);
  }

  const FunctionLibrary* library_;
};

}  // namespace

std::unique_ptr<OperatorSet> MakeOnnxOperators(const FunctionLibrary* library) {
  return std::make_unique<OnnxOperators>(library);
}

}  // namespace onward
