// SPDX-License-Identifier: Apache-2.0
#include "core/graph/builder.h"

#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/constant.h"
#include "core/graph/infer_bodies.h"

namespace onward {
namespace {

constexpr int64_t kSharedConstantElements = 64;

const ValueType& UnknownType() {
  static const ValueType* type = new ValueType;
  return *type;
}

}  // namespace

const ValueType& Expr::type() const {
  if (!defined()) return UnknownType();
  const ValueType* t = builder_->graph().TypeOf(name_);
  return t == nullptr ? UnknownType() : *t;
}

int64_t Expr::dim(int i) const {
  const ValueType& t = type();
  if (!t.has_rank) return -1;
  const int index = i < 0 ? i + t.rank() : i;
  if (index < 0 || index >= t.rank()) return -1;
  return t.dims[index].value;
}

GraphBuilder::GraphBuilder(Graph* graph, const OperatorSet* operators, std::string prefix)
    : graph_(graph), operators_(operators), prefix_(std::move(prefix)) {
  names_->Reserve(*graph);
  RememberConstants();
}

GraphBuilder::GraphBuilder(Graph* graph, const OperatorSet* operators, std::string prefix,
                           NameScope* names)
    : graph_(graph), operators_(operators), prefix_(std::move(prefix)), names_(names) {
  RememberConstants();
}

void GraphBuilder::RememberConstants() {
  for (const Node& node : graph_->nodes) RememberConstant(node);
}

Expr GraphBuilder::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
  return Expr(this, "failed");
}

Expr GraphBuilder::Value(std::string name) { return Expr(this, std::move(name)); }

Expr GraphBuilder::Input(std::string name, ValueType type) {
  names_->Reserve(name);
  graph_->types[name] = type;
  graph_->inputs.push_back({name, std::move(type)});
  return Expr(this, std::move(name));
}

Expr GraphBuilder::Constant(const Tensor& value) {
  std::string key;
  if (value.elements() <= kSharedConstantElements && value.dtype() != DType::kString) {
    key = absl::StrCat(static_cast<int>(value.dtype()), value.shape().ToString(), "|");
    key.append(static_cast<const char*>(value.raw()), value.bytes());
    if (auto it = shared_constants_.find(key); it != shared_constants_.end()) {
      return Expr(this, it->second);
    }
  }
  Expr e = Op("Constant", {}, {{"value", value}});
  if (!key.empty()) shared_constants_.emplace(std::move(key), e.name());
  return e;
}

Expr GraphBuilder::Ints(std::vector<int64_t> values) {
  Shape shape{static_cast<int64_t>(values.size())};
  return Constant(Tensor::FromValues<int64_t>(std::move(shape), absl::Span<const int64_t>(values)));
}

Expr GraphBuilder::Int(int64_t value) { return Constant(Tensor::Scalar<int64_t>(value)); }

Expr GraphBuilder::Scalar(double value, const Expr& like) {
  if (like.dtype() != DType::kUndefined) return Constant(ScalarOf(like.dtype(), value));
  return CastLike(Constant(Tensor::Scalar<float>(static_cast<float>(value))), like);
}

Expr GraphBuilder::AttributeNumber(const Node& call, const std::string& attribute,
                                   float otherwise) {
  auto it = call.attributes.find(attribute);
  if (it == call.attributes.end() || it->second.ref.empty()) {
    return Constant(ScalarOf(DType::kDouble, call.Float(attribute, otherwise)));
  }
  return Cast(Op("Constant", {}, {{"value_float", it->second}}), DType::kDouble);
}

Expr GraphBuilder::Op(std::string_view op, std::vector<Expr> inputs, Attributes attributes,
                      std::string_view domain, std::string_view output_hint) {
  Node node;
  node.op_type = std::string(op);
  node.domain = std::string(domain);
  node.attributes = std::move(attributes);
  for (const Expr& in : inputs) node.inputs.push_back(in.name());
  while (!node.inputs.empty() && node.inputs.back().empty()) node.inputs.pop_back();
  node.outputs.push_back(UniqueName(output_hint.empty() ? prefix_ : output_hint));
  std::string name = node.outputs[0];
  Append(std::move(node));
  return Expr(this, std::move(name));
}

std::vector<Expr> GraphBuilder::Ops(std::string_view op, std::vector<Expr> inputs, int outputs,
                                    Attributes attributes, std::string_view domain) {
  Node node;
  node.op_type = std::string(op);
  node.domain = std::string(domain);
  node.attributes = std::move(attributes);
  for (const Expr& in : inputs) node.inputs.push_back(in.name());
  while (!node.inputs.empty() && node.inputs.back().empty()) node.inputs.pop_back();
  std::vector<Expr> results;
  for (int i = 0; i < outputs; ++i) {
    node.outputs.push_back(UniqueName(prefix_));
    results.emplace_back(this, node.outputs.back());
  }
  Append(std::move(node));
  return results;
}

void GraphBuilder::RememberConstant(const Node& node) {
  if (std::optional<Tensor> value = ConstantValue(node))
    constants_.emplace(node.outputs[0], *value);
}

void GraphBuilder::Append(Node node) {
  if (!status_.ok()) return;
  RememberConstant(node);
  names_->ReserveAll(node.outputs);
  ImportDomain(node.domain, graph_);
  graph_->nodes.push_back(std::move(node));
  InferTypes(graph_->nodes.back());
}

void GraphBuilder::InferTypes(const Node& node) {
  if (operators_ == nullptr) return;
  auto types = TypesOf(node);
  if (!types.ok()) {
    Fail(types.status());
    return;
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i].empty()) graph_->types[node.outputs[i]] = std::move((*types)[i]);
  }
}

absl::StatusOr<std::vector<ValueType>> GraphBuilder::TypesOf(const Node& node) const {
  return InferOutputs(
      node, [&](const std::string& value) { return FactOf(value); }, *operators_, graph_->opsets);
}

Expr GraphBuilder::Named(const Expr& e, std::string name) {
  Node node;
  node.op_type = "Identity";
  node.inputs = {e.name()};
  node.outputs = {name};
  Append(std::move(node));
  return Expr(this, std::move(name));
}

void GraphBuilder::Output(const Expr& e) { graph_->outputs.push_back({e.name(), e.type()}); }

std::string GraphBuilder::UniqueName(std::string_view base) {
  return base == prefix_ ? names_->Numbered(prefix_) : names_->Unique(std::string(base));
}

const Tensor* GraphBuilder::ConstantOf(const std::string& value) const {
  if (auto it = constants_.find(value); it != constants_.end()) return &it->second;
  auto it = graph_->initializers.find(value);
  return it == graph_->initializers.end() ? nullptr : &it->second;
}

}  // namespace onward
