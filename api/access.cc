// SPDX-License-Identifier: Apache-2.0
#include "api/access.h"

namespace onward::api {
namespace {

ValueKind ToKind(ValueType::Kind kind) {
  switch (kind) {
    case ValueType::Kind::kTensor: return ValueKind::kTensor;
    case ValueType::Kind::kSparse: return ValueKind::kSparseTensor;
    case ValueType::Kind::kSequence: return ValueKind::kSequence;
    case ValueType::Kind::kOptional: return ValueKind::kOptional;
    case ValueType::Kind::kMap: return ValueKind::kMap;
  }
  return ValueKind::kTensor;
}

}  // namespace

Tensor Access::ToTensor(onward::Tensor tensor) {
  Tensor out;
  if (!tensor.defined()) return out;
  Shape shape(tensor.shape().begin(), tensor.shape().end());
  out.impl_ = std::make_shared<Tensor::Impl>(Tensor::Impl{std::move(tensor), std::move(shape)});
  return out;
}

onward::Tensor Access::FromTensor(const Tensor& tensor) {
  return tensor.impl_ == nullptr ? onward::Tensor() : tensor.impl_->tensor;
}

Model Access::ToModel(onward::Model model) {
  return Model(std::make_unique<Model::Impl>(Model::Impl{std::move(model)}));
}

const onward::Model& Access::FromModel(const Model& model) { return model.impl_->model; }

Status ToStatus(const absl::Status& status) {
  return Status(static_cast<StatusCode>(status.code()), std::string(status.message()));
}

TensorMap ToTensors(onward::TensorMap tensors) {
  TensorMap out;
  for (auto& [name, tensor] : tensors) out.emplace(name, Access::ToTensor(std::move(tensor)));
  return out;
}

onward::TensorMap FromTensors(const TensorMap& tensors) {
  onward::TensorMap out;
  for (const auto& [name, tensor] : tensors) out.emplace(name, Access::FromTensor(tensor));
  return out;
}

ValueMap ToValues(onward::ValueMap values) {
  ValueMap out;
  for (auto& [name, value] : values) out.emplace(name, Access::ToValue(std::move(value)));
  return out;
}

onward::ValueMap FromValues(const ValueMap& values) {
  onward::ValueMap out;
  for (const auto& [name, value] : values) out.emplace(name, Access::FromValue(value));
  return out;
}

std::vector<ValueInfo> ToInfos(const std::vector<NamedType>& types) {
  std::vector<ValueInfo> infos;
  for (const NamedType& t : types) {
    ValueInfo info;
    info.name = t.name;
    info.kind = ToKind(t.type.kind);
    info.element_type = static_cast<ElementType>(t.type.leaf());
    info.has_shape = t.type.has_rank;
    for (const Dim& d : t.type.dims) info.shape.push_back({d.value, d.symbol});
    info.text = t.type.ToString();
    infos.push_back(std::move(info));
  }
  return infos;
}

}  // namespace onward::api
