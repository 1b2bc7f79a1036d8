// SPDX-License-Identifier: Apache-2.0
#include "core/onnx_io/file_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file_descriptor.h"

namespace onward {
namespace {

constexpr size_t kChunk = size_t{4} << 20;  // a multiple of the page size

}  // namespace

absl::StatusOr<ModelFileBytes> ModelFileBytes::Read(const std::string& path, int64_t limit) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) {
    return absl::NotFoundError(absl::StrCat("cannot open '", path, "': ", std::strerror(errno)));
  }
  struct stat info;
  if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not a regular file"));
  }
  if (info.st_size == 0) return absl::InvalidArgumentError(absl::StrCat("'", path, "' is empty"));
  if (info.st_size > limit) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' has ", info.st_size,
                     " bytes; an .onnx file has at most 2 GiB (larger models keep "
                     "their weights as external data)"));
  }
  const size_t size = static_cast<size_t>(info.st_size);
  // Not the file itself: it may be cut short while it is read.
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat("'", path, "': out of memory"));
  }
  ModelFileBytes bytes(static_cast<char*>(data), size);
  if (!file.Read(bytes.data_, size, 0)) {
    return absl::DataLossError(absl::StrCat("'", path, "' could not be read completely"));
  }
  return bytes;
}

ModelFileBytes::ModelFileBytes(ModelFileBytes&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

ModelFileBytes::~ModelFileBytes() {
  if (data_ != nullptr) munmap(data_, size_);
}

bool ReleasingStream::Next(const void** data, int* size) {
  // The last chunk stays: the parser may back up into it.
  while (released_ + 2 * kChunk <= at_) {
    madvise(bytes_.data_ + released_, kChunk, MADV_DONTNEED);
    released_ += kChunk;
  }
  if (at_ >= bytes_.size_) return false;
  const size_t n = std::min(kChunk, bytes_.size_ - at_);
  *data = bytes_.data_ + at_;
  *size = static_cast<int>(n);
  at_ += n;
  return true;
}

bool ReleasingStream::Skip(int count) {
  const size_t left = bytes_.size_ - at_;
  at_ += std::min(left, static_cast<size_t>(count));
  return static_cast<size_t>(count) <= left;
}

}  // namespace onward
