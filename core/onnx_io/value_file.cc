// SPDX-License-Identifier: Apache-2.0
#include "core/onnx_io/value_file.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "core/base/atomic_file.h"
#include "core/base/status.h"
#include "core/onnx_io/proto.h"
#include "core/onnx_io/value_proto.h"

namespace onward {
namespace {

// Parses a file as `Proto` and makes of it what `convert` does.
template <typename Proto, typename Convert>
auto ReadAs(const std::string& path, const char* what, const Convert& convert)
    -> decltype(convert(Proto(), nullptr)) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return absl::NotFoundError(absl::StrCat("'", path, "' is not a file"));
  }
  std::ifstream in(path, std::ios::binary);
  Proto proto;
  if (!in || !proto.ParseFromIstream(&in)) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not a ", what));
  }
  const ExternalData external(std::filesystem::path(path).parent_path().string());
  auto value = convert(proto, &external);
  if (!value.ok()) return Annotate(value.status(), absl::StrCat("'", path, "'"));
  return value;
}

}  // namespace

absl::StatusOr<Tensor> ReadTensorFile(const std::string& path) {
  return ReadAs<onnx::TensorProto>(path, "TensorProto", TensorFromProto);
}

absl::Status WriteTensorFile(const Tensor& tensor, const std::string& name,
                             const std::string& path) {
  onnx::TensorProto proto;
  TensorToProto(tensor, name, &proto);
  return WriteFileAtomically(path, proto.SerializeAsString());
}

absl::StatusOr<Value> ReadValueFile(const std::string& path, const ValueType& type) {
  switch (type.kind) {
    case ValueType::Kind::kSequence:
      return ReadAs<onnx::SequenceProto>(path, "SequenceProto", SequenceFromProto);
    case ValueType::Kind::kOptional:
      return ReadAs<onnx::OptionalProto>(path, "OptionalProto", OptionalFromProto);
    case ValueType::Kind::kMap: return ReadAs<onnx::MapProto>(path, "MapProto", MapFromProto);
    case ValueType::Kind::kSparse:
      return ReadAs<onnx::SparseTensorProto>(path, "SparseTensorProto", SparseValueFromProto);
    case ValueType::Kind::kTensor: break;
  }
  ONWARD_ASSIGN_OR_RETURN(Tensor tensor, ReadTensorFile(path));
  return Value(std::move(tensor));
}

absl::Status WriteValueFile(const Value& value, const ValueType& type, const std::string& name,
                            const std::string& path) {
  std::string bytes;
  if (type.kind == ValueType::Kind::kOptional || value.empty()) {
    onnx::OptionalProto proto;
    OptionalToProto(value, name, &proto);
    bytes = proto.SerializeAsString();
  } else if (value.sequence() != nullptr) {
    onnx::SequenceProto proto;
    SequenceToProto(*value.sequence(), name, &proto);
    bytes = proto.SerializeAsString();
  } else if (value.map() != nullptr) {
    onnx::MapProto proto;
    MapToProto(*value.map(), name, &proto);
    bytes = proto.SerializeAsString();
  } else if (value.sparse() != nullptr) {
    onnx::SparseTensorProto proto;
    SparseToProto(*value.sparse(), name, &proto);
    bytes = proto.SerializeAsString();
  } else {
    return WriteTensorFile(*value.tensor(), name, path);
  }
  return WriteFileAtomically(path, bytes);
}

}  // namespace onward
