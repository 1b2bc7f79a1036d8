// SPDX-License-Identifier: Apache-2.0
// Models to files.
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "core/base/atomic_file.h"
#include "core/base/status.h"
#include "core/onnx_io/embed.h"
#include "core/onnx_io/model.h"
#include "onnx/onnx_pb.h"

namespace onward {

absl::Status WriteModel(const Model& model, const std::string& path) {
  if (HasExternalData(model)) {
    for (const std::string& file : ExternalFiles(model)) {
      std::error_code ignored;
      if (!std::filesystem::equivalent(file, path, ignored)) continue;
      return absl::InvalidArgumentError(absl::StrCat("will not write '", path,
                                                     "': it holds weights of '", model.path(),
                                                     "'; choose another name"));
    }
    Model whole = model;
    ONWARD_RETURN_IF_ERROR(
        Annotate(EmbedExternalData(&whole), absl::StrCat("'", model.path(), "'")));
    return WriteModel(whole, path);
  }
  constexpr size_t kMaxMessage = (size_t{1} << 31) - 1;
  const size_t size = model.proto().ByteSizeLong();
  if (size > kMaxMessage) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the model needs ", size, " bytes; one .onnx file holds at most 2 GiB"));
  }
  std::string bytes;
  if (!model.proto().SerializeToString(&bytes))
    return absl::InternalError("the model cannot be serialized");
  return WriteFileAtomically(path, bytes);
}

}  // namespace onward
