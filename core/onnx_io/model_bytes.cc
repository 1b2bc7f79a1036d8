// SPDX-License-Identifier: Apache-2.0
#include "core/onnx_io/model_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace onward {
namespace {

constexpr size_t kWindow = size_t{64} << 10;
constexpr size_t kReadChunk = size_t{4} << 20;  // a multiple of the page size

}  // namespace

absl::StatusOr<ModelBytes> ModelBytes::Open(const std::string& path, int64_t limit, bool glance) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  auto file =
      std::make_unique<FileDescriptor>(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file->get() < 0) {
    return absl::NotFoundError(absl::StrCat("cannot open '", path, "': ", std::strerror(errno)));
  }
  struct stat info;
  if (fstat(file->get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not a regular file"));
  }
  if (info.st_size == 0) return absl::InvalidArgumentError(absl::StrCat("'", path, "' is empty"));
  if (info.st_size > limit) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", path, "' has ", info.st_size,
        " bytes; an .onnx file has at most 2 GiB. Larger models keep their weights in a file "
        "beside it: write it anew with external data (`onward ... --external-data`, or onnx's "
        "save_model(..., save_as_external_data=True))"));
  }
  const size_t size = static_cast<size_t>(info.st_size);
  // Not the file itself: it may be cut short while it is read.
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat("'", path, "': out of memory"));
  }
  return ModelBytes(std::move(file), static_cast<char*>(data), size, glance);
}

ModelBytes::ModelBytes(absl::string_view bytes)
    : data_(const_cast<char*>(bytes.data())), size_(bytes.size()), loaded_(bytes.size()) {}

ModelBytes::ModelBytes(ModelBytes&& other) noexcept
    : file_(std::move(other.file_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      glance_(other.glance_),
      loaded_(other.loaded_),
      ok_(other.ok_) {}

ModelBytes::~ModelBytes() {
  if (file_ != nullptr && data_ != nullptr) munmap(data_, size_);
}

void ModelBytes::LoadMore(size_t end) {
  end = std::min(size_, std::max(end, loaded_ + kWindow));
  if (file_ != nullptr && end > loaded_) {
    ok_ &= file_->Read(data_ + loaded_, end - loaded_, static_cast<off_t>(loaded_));
  }
  loaded_ = end;
}

void ModelBytes::CopyTo(size_t offset, size_t bytes, char* to) {
  if (file_ == nullptr) {
    std::memcpy(to, data_ + offset, bytes);
  } else {
    ok_ &= file_->Read(to, bytes, static_cast<off_t>(offset));
  }
}

bool ModelBytes::Replaced(const std::string& path) const {
  struct stat own, other;
  return file_ != nullptr && fstat(file_->get(), &own) == 0 && stat(path.c_str(), &other) == 0 &&
         (own.st_dev != other.st_dev || own.st_ino != other.st_ino);
}

SplicedStream::SplicedStream(ModelBytes* bytes, const std::vector<Splice>& splices)
    : bytes_(*bytes) {
  size_t at = 0;
  const auto add = [&](absl::string_view part) {
    for (; !part.empty(); part.remove_prefix(std::min(part.size(), kReadChunk))) {
      parts_.push_back(part.substr(0, kReadChunk));
    }
  };
  for (const Splice& s : splices) {
    add({bytes_.data_ + at, s.begin - at});
    add(s.with);
    add(s.payload);
    at = s.end;
  }
  add({bytes_.data_ + at, bytes_.size_ - at});
}

bool SplicedStream::Next(const void** data, int* size) {
  if (part_ < parts_.size() && within_ == parts_[part_].size()) {
    ++part_;
    within_ = 0;
  }
  if (part_ >= parts_.size()) return false;
  const absl::string_view rest = parts_[part_].substr(within_);
  // The last chunk stays: the parser may back up into it.
  if (bytes_.file_ != nullptr && rest.data() >= bytes_.data_ &&
      rest.data() < bytes_.data_ + bytes_.size_) {
    const auto at = static_cast<size_t>(rest.data() - bytes_.data_);
    while (released_ + 2 * kReadChunk <= at) {
      madvise(bytes_.data_ + released_, kReadChunk, MADV_DONTNEED);
      released_ += kReadChunk;
    }
  }
  *data = rest.data();
  *size = static_cast<int>(rest.size());
  within_ = parts_[part_].size();
  count_ += *size;
  return true;
}

void SplicedStream::BackUp(int count) {
  within_ -= static_cast<size_t>(count);
  count_ -= count;
}

bool SplicedStream::Skip(int count) {
  const void* data;
  int size = 0;
  while (count > 0) {
    if (!Next(&data, &size)) return false;
    if (size > count) BackUp(size - count);
    count -= std::min(size, count);
  }
  return true;
}

}  // namespace onward
