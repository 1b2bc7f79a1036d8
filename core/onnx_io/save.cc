// SPDX-License-Identifier: Apache-2.0
// Files are written whole or not at all.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/onnx_io/embed.h"
#include "core/onnx_io/model.h"
#include "onnx/onnx_pb.h"

namespace onward {
namespace {

absl::Status IoError(const std::string& what, const std::string& path) {
  return absl::InternalError(
      absl::StrCat("cannot ", what, " '", path, "': ", std::strerror(errno)));
}

absl::Status WriteAll(int fd, const std::string& bytes, const std::string& path) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return IoError("write", path);
    done += static_cast<size_t>(n);
  }
  if (fsync(fd) != 0) return IoError("flush", path);
  struct stat info;
  if (fstat(fd, &info) != 0 || static_cast<size_t>(info.st_size) != bytes.size()) {
    return absl::DataLossError(absl::StrCat("'", path, "' was not written completely"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteFileAtomically(const std::string& path, const std::string& bytes) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path target(path);
  if (fs::is_directory(target, ignored)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot write '", path, "': it is a folder"));
  }
  if (fs::exists(fs::symlink_status(target, ignored)) &&
      !fs::is_regular_file(fs::symlink_status(target, ignored))) {
    return absl::InvalidArgumentError(
        absl::StrCat("will not write '", path, "': it exists and is not a regular file"));
  }
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".tmp");
  const int fd =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return IoError("create", temporary);
  absl::Status status = WriteAll(fd, bytes, temporary);
  if (close(fd) != 0 && status.ok()) status = IoError("close", temporary);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0)
    status = IoError("rename to", path);
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  const std::string folder = target.has_parent_path() ? target.parent_path().string() : ".";
  const int dir = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir >= 0) {
    fsync(dir);
    close(dir);
  }
  return absl::OkStatus();
}

absl::Status WriteModel(const Model& model, const std::string& path) {
  if (HasExternalData(model)) {
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
