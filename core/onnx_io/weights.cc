// SPDX-License-Identifier: Apache-2.0
#include "core/onnx_io/weights.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace onward {

WeightFile::WeightFile(int fd, size_t size, dev_t device, ino_t inode, bool keep_open)
    : file_(std::make_unique<FileDescriptor>(fd)), size_(size), device_(device), inode_(inode) {
  if (size_ == 0) return;
  void* mapped = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
  if (mapped == MAP_FAILED) return;
  data_ = static_cast<char*>(mapped);
  if (!keep_open) file_.reset();
}

WeightFile::~WeightFile() {
  if (data_ != nullptr) munmap(data_, size_);
}

bool WeightFile::Read(char* to, size_t bytes, uint64_t offset) const {
  if (file_ != nullptr) return file_->Read(to, bytes, static_cast<off_t>(offset));
  std::memcpy(to, data_ + offset, bytes);
  return true;
}

void WeightFile::Release(const char* from, size_t bytes) const {
  if (data_ == nullptr) return;
  static const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t begin = (static_cast<size_t>(from - data_) + page - 1) / page * page;
  const size_t end = static_cast<size_t>(from - data_) + bytes;
  if (begin < end) madvise(data_ + begin, end - begin, MADV_DONTNEED);
}

absl::Status WeightFile::StillWhole() const {
  struct stat info;
  if (file_ == nullptr) return absl::OkStatus();
  if (fstat(file_->get(), &info) == 0 && static_cast<size_t>(info.st_size) >= size_) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat("a file of weights had ", size_,
                                          " bytes when it was read and has ", info.st_size,
                                          " now; it must stay as it is while the model is in use"));
}

Weights::Bytes Weights::New(size_t size) {
  Bytes bytes;
  auto memory = std::make_shared<Tensor>(DType::kUint8, Shape{static_cast<int64_t>(size)});
  bytes.data = memory->data<char>();
  bytes.size = size;
  bytes.owner = std::move(memory);
  return bytes;
}

int64_t Weights::Add(Bytes bytes) {
  held_.push_back(std::move(bytes));
  return static_cast<int64_t>(held_.size()) - 1;
}

int64_t Weights::Add(const Tensor& tensor) {
  Bytes bytes;
  auto holder = std::make_shared<Tensor>(tensor);
  bytes.data = holder->data<char>();
  bytes.size = holder->bytes();
  bytes.owner = std::move(holder);
  bytes.shared = true;
  return Add(std::move(bytes));
}

const Weights::Bytes* Weights::Find(int64_t number) const {
  if (number < 0 || number >= static_cast<int64_t>(held_.size())) return nullptr;
  const Bytes& bytes = held_[static_cast<size_t>(number)];
  return bytes.owner == nullptr ? nullptr : &bytes;
}

absl::StatusOr<Tensor> Weights::Take(int64_t number, DType dtype, const Shape& shape) {
  const Bytes* found = Find(number);
  if (found == nullptr || found->size != TensorBytes(dtype, shape)) {
    return absl::InternalError("a weight is not where the model says");
  }
  Bytes bytes = std::exchange(held_[static_cast<size_t>(number)], {});
  if (!bytes.mapped() && !bytes.shared && bytes.owner.use_count() == 1) {
    return Tensor(dtype, shape, bytes.data, std::move(bytes.owner));
  }
  Tensor copy(dtype, shape);
  if (!bytes.mapped()) {
    std::memcpy(copy.raw(), bytes.data, bytes.size);
    return copy;
  }
  if (!bytes.file->Read(copy.data<char>(), bytes.size, bytes.offset)) {
    return absl::DataLossError("a file of weights could not be read again");
  }
  bytes.file->Release(bytes.data, bytes.size);
  return copy;
}

std::map<std::shared_ptr<const WeightFile>, bool> Weights::Files() const {
  std::map<std::shared_ptr<const WeightFile>, bool> files;
  for (const Bytes& bytes : held_) {
    if (bytes.file != nullptr) files[bytes.file] |= bytes.mapped();
  }
  return files;
}

std::function<void(const void*, size_t)> Weights::PageReleaser() const {
  std::vector<std::shared_ptr<const WeightFile>> mapped;
  for (const auto& [file, in_use] : Files()) {
    if (in_use) mapped.push_back(file);
  }
  if (mapped.empty()) return nullptr;
  return [mapped = std::move(mapped)](const void* data, size_t bytes) {
    const char* from = static_cast<const char*>(data);
    for (const auto& file : mapped) {
      const std::less_equal<const char*> before;
      if (before(file->data(), from) && before(from + bytes, file->data() + file->size())) {
        file->Release(from, bytes);
      }
    }
  };
}

}  // namespace onward
