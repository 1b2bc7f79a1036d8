// SPDX-License-Identifier: Apache-2.0
#include "core/onnx_io/tensor_file.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "core/base/atomic_file.h"
#include "core/base/status.h"
#include "core/onnx_io/model.h"
#include "core/onnx_io/proto.h"

namespace onward {

absl::StatusOr<Tensor> ReadTensorFile(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return absl::NotFoundError(absl::StrCat("'", path, "' is not a file"));
  }
  std::ifstream in(path, std::ios::binary);
  onnx::TensorProto proto;
  if (!in || !proto.ParseFromIstream(&in)) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not a TensorProto"));
  }
  const ExternalData external(std::filesystem::path(path).parent_path().string());
  auto tensor = TensorFromProto(proto, &external);
  if (!tensor.ok()) return Annotate(tensor.status(), absl::StrCat("'", path, "'"));
  return tensor;
}

absl::Status WriteTensorFile(const Tensor& tensor, const std::string& name,
                             const std::string& path) {
  onnx::TensorProto proto;
  TensorToProto(tensor, name, &proto);
  return WriteFileAtomically(path, proto.SerializeAsString());
}

}  // namespace onward
