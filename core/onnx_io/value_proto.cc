// SPDX-License-Identifier: Apache-2.0
#include "core/onnx_io/value_proto.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/onnx_io/proto.h"

namespace onward {
namespace {

// The type of an item, as the message that lists it names it.
int ItemCode(const Value& value) {
  if (value.tensor() != nullptr) return onnx::SequenceProto::TENSOR;
  if (value.sparse() != nullptr) return onnx::SequenceProto::SPARSE_TENSOR;
  if (value.sequence() != nullptr) return onnx::SequenceProto::SEQUENCE;
  return value.map() != nullptr ? onnx::SequenceProto::MAP : onnx::SequenceProto::UNDEFINED;
}

int ItemCode(const ValueType& type) {
  switch (type.kind) {
    case ValueType::Kind::kSparse: return onnx::SequenceProto::SPARSE_TENSOR;
    case ValueType::Kind::kSequence: return onnx::SequenceProto::SEQUENCE;
    case ValueType::Kind::kMap: return onnx::SequenceProto::MAP;
    case ValueType::Kind::kOptional: return onnx::SequenceProto::OPTIONAL;
    case ValueType::Kind::kTensor: break;
  }
  return onnx::SequenceProto::TENSOR;
}

ValueType EmptyItem(int code) {
  ValueType type;
  if (code == onnx::SequenceProto::SPARSE_TENSOR) type.kind = ValueType::Kind::kSparse;
  if (code == onnx::SequenceProto::SEQUENCE) type.kind = ValueType::Kind::kSequence;
  if (code == onnx::SequenceProto::MAP) type.kind = ValueType::Kind::kMap;
  if (code == onnx::SequenceProto::OPTIONAL) type.kind = ValueType::Kind::kOptional;
  return type;
}

absl::StatusOr<Sequence> ItemsFromProto(const onnx::SequenceProto& proto,
                                        const ExternalData* external) {
  Sequence sequence;
  const auto add = [&](absl::StatusOr<Value> item) -> absl::Status {
    if (!item.ok()) {
      return Annotate(item.status(), absl::StrCat("item ", sequence.items.size()));
    }
    const ValueType type = item->type();
    sequence.element = sequence.items.empty() ? type : CommonType(sequence.element, type);
    sequence.items.push_back(*std::move(item));
    return absl::OkStatus();
  };
  for (const auto& p : proto.tensor_values()) {
    ONWARD_RETURN_IF_ERROR(add(TensorFromProto(p, external)));
  }
  for (const auto& p : proto.sparse_tensor_values()) {
    ONWARD_RETURN_IF_ERROR(add(SparseValueFromProto(p, external)));
  }
  for (const auto& p : proto.sequence_values()) {
    ONWARD_RETURN_IF_ERROR(add(SequenceFromProto(p, external)));
  }
  for (const auto& p : proto.map_values()) ONWARD_RETURN_IF_ERROR(add(MapFromProto(p, external)));
  for (const auto& p : proto.optional_values()) {
    ONWARD_RETURN_IF_ERROR(add(OptionalFromProto(p, external)));
  }
  if (sequence.items.empty()) sequence.element = EmptyItem(proto.elem_type());
  return sequence;
}

}  // namespace

absl::StatusOr<Value> SequenceFromProto(const onnx::SequenceProto& proto,
                                        const ExternalData* external) {
  ONWARD_ASSIGN_OR_RETURN(Sequence sequence, ItemsFromProto(proto, external));
  return Value(std::move(sequence));
}

absl::StatusOr<Value> MapFromProto(const onnx::MapProto& proto, const ExternalData* external) {
  Map map;
  if (proto.key_type() == onnx::TensorProto::STRING) {
    map.keys = Tensor::FromValues<std::string>(
        Shape{proto.string_keys_size()},
        std::vector<std::string>(proto.string_keys().begin(), proto.string_keys().end()));
  } else if (IsKnownDType(proto.key_type())) {
    const std::vector<int64_t> keys(proto.keys().begin(), proto.keys().end());
    map.keys = Tensor::FromValues<int64_t>(Shape{proto.keys_size()}, keys);
  } else {
    return absl::InvalidArgumentError(absl::StrCat("keys of type ", proto.key_type()));
  }
  ONWARD_ASSIGN_OR_RETURN(map.values, ItemsFromProto(proto.values(), external));
  if (map.keys.elements() != static_cast<int64_t>(map.values.items.size())) {
    return absl::InvalidArgumentError(absl::StrCat("a map of ", map.keys.elements(), " keys and ",
                                                   map.values.items.size(), " values"));
  }
  return Value(std::move(map));
}

absl::StatusOr<Value> OptionalFromProto(const onnx::OptionalProto& proto,
                                        const ExternalData* external) {
  if (proto.has_tensor_value()) {
    ONWARD_ASSIGN_OR_RETURN(Tensor tensor, TensorFromProto(proto.tensor_value(), external));
    return Value(std::move(tensor));
  }
  if (proto.has_sparse_tensor_value()) {
    return SparseValueFromProto(proto.sparse_tensor_value(), external);
  }
  if (proto.has_sequence_value()) return SequenceFromProto(proto.sequence_value(), external);
  if (proto.has_map_value()) return MapFromProto(proto.map_value(), external);
  if (proto.has_optional_value()) return OptionalFromProto(proto.optional_value(), external);
  return Value();
}

absl::StatusOr<Value> SparseValueFromProto(const onnx::SparseTensorProto& proto,
                                           const ExternalData* external) {
  SparseTensor sparse;
  ONWARD_ASSIGN_OR_RETURN(sparse.values, TensorFromProto(proto.values(), external));
  ONWARD_ASSIGN_OR_RETURN(sparse.indices, TensorFromProto(proto.indices(), external));
  const std::vector<int64_t> dims(proto.dims().begin(), proto.dims().end());
  ONWARD_RETURN_IF_ERROR(CheckedElements(dims).status());
  sparse.shape = Shape(absl::MakeConstSpan(dims));
  const int rank = sparse.indices.shape().rank();
  const bool by_axis = rank == 2 && sparse.indices.shape()[1] == sparse.shape.rank();
  if (sparse.indices.dtype() != DType::kInt64 || (rank != 1 && !by_axis) ||
      sparse.values.shape().rank() != 1 || sparse.indices.shape()[0] != sparse.values.elements()) {
    return absl::InvalidArgumentError(absl::StrCat("a sparse tensor with values ",
                                                   Value(sparse.values).ToString(), " and indices ",
                                                   Value(sparse.indices).ToString()));
  }
  return Value(std::move(sparse));
}

void SequenceToProto(const Sequence& sequence, const std::string& name,
                     onnx::SequenceProto* proto) {
  proto->set_name(name);
  proto->set_elem_type(sequence.items.empty() ? ItemCode(sequence.element)
                                              : ItemCode(sequence.items[0]));
  for (const Value& item : sequence.items) {
    if (item.tensor() != nullptr) TensorToProto(*item.tensor(), "", proto->add_tensor_values());
    if (item.sparse() != nullptr)
      SparseToProto(*item.sparse(), "", proto->add_sparse_tensor_values());
    if (item.sequence() != nullptr)
      SequenceToProto(*item.sequence(), "", proto->add_sequence_values());
    if (item.map() != nullptr) MapToProto(*item.map(), "", proto->add_map_values());
    if (item.empty()) OptionalToProto(item, "", proto->add_optional_values());
  }
}

void MapToProto(const Map& map, const std::string& name, onnx::MapProto* proto) {
  proto->set_name(name);
  proto->set_key_type(static_cast<int32_t>(map.keys.dtype()));
  if (map.keys.dtype() == DType::kString) {
    for (const std::string& key : map.keys.values<std::string>()) proto->add_string_keys(key);
  } else {
    for (int64_t key : map.keys.values<int64_t>()) proto->add_keys(key);
  }
  SequenceToProto(map.values, "", proto->mutable_values());
}

void OptionalToProto(const Value& value, const std::string& name, onnx::OptionalProto* proto) {
  proto->set_name(name);
  proto->set_elem_type(ItemCode(value));
  if (value.tensor() != nullptr) TensorToProto(*value.tensor(), "", proto->mutable_tensor_value());
  if (value.sparse() != nullptr) {
    SparseToProto(*value.sparse(), "", proto->mutable_sparse_tensor_value());
  }
  if (value.sequence() != nullptr) {
    SequenceToProto(*value.sequence(), "", proto->mutable_sequence_value());
  }
  if (value.map() != nullptr) MapToProto(*value.map(), "", proto->mutable_map_value());
}

void SparseToProto(const SparseTensor& sparse, const std::string& name,
                   onnx::SparseTensorProto* proto) {
  TensorToProto(sparse.values, name, proto->mutable_values());
  TensorToProto(sparse.indices, "", proto->mutable_indices());
  for (int64_t d : sparse.shape) proto->add_dims(d);
}

}  // namespace onward
