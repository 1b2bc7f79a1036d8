// SPDX-License-Identifier: Apache-2.0
// The bytes of a serialized model and edits to them: a file is loaded as far as it is
// looked at, and large tensors go from it to their place without a stop in between.
#ifndef ONWARD_CORE_ONNX_IO_MODEL_BYTES_H_
#define ONWARD_CORE_ONNX_IO_MODEL_BYTES_H_

#include <google/protobuf/io/zero_copy_stream.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/file_descriptor.h"

namespace onward {

// Of a model in one file: protobuf counts in int.
inline constexpr int64_t kMostModelBytes = (int64_t{1} << 31) - 1;

class ModelBytes {
 public:
  // A regular file of at most `limit` bytes, not empty. Nothing is read yet.
  // `glance`: what is not looked at need never be loaded.
  static absl::StatusOr<ModelBytes> Open(const std::string& path, int64_t limit,
                                         bool glance = false);
  // Bytes that the caller keeps.
  explicit ModelBytes(absl::string_view bytes);

  ModelBytes(ModelBytes&& other) noexcept;
  ModelBytes& operator=(ModelBytes&&) = delete;
  ~ModelBytes();

  size_t size() const { return size_; }
  // The first byte of all; those from `begin` to `end` are loaded, and those before unless they
  // were skipped. Offsets given to Load and Skip never go back. Where the file cannot be
  // read, zeros stand for it and ok() tells.
  const char* Load(size_t begin, size_t end) {
    if (glance_) Skip(begin);
    if (end > loaded_) LoadMore(end);
    return data_;
  }
  void Skip(size_t to) {
    if (to > loaded_) loaded_ = to;
  }
  // Bytes from anywhere, into memory of the caller's.
  void CopyTo(size_t offset, size_t bytes, char* to);
  bool ok() const { return ok_; }
  // Whether another file has taken the place of this one.
  bool Replaced(const std::string& path) const;

 private:
  friend class SplicedStream;
  ModelBytes(std::unique_ptr<FileDescriptor> file, char* data, size_t size, bool glance)
      : file_(std::move(file)), data_(data), size_(size), glance_(glance) {}
  void LoadMore(size_t end);

  std::unique_ptr<FileDescriptor> file_;  // null: the bytes are the caller's
  char* data_;
  size_t size_;
  bool glance_ = false;
  size_t loaded_ = 0;
  bool ok_ = true;
};

// `with`, then `payload`, in place of the bytes from `begin` to `end`.
struct Splice {
  size_t begin, end;
  std::string with = "";
  absl::string_view payload = {};

  int64_t growth() const {
    return static_cast<int64_t>(with.size() + payload.size()) - static_cast<int64_t>(end - begin);
  }
};

// The bytes with the splices (in their order) made, for a parser that goes through them
// once; what it has passed is given back to the system, where it was read from a file.
class SplicedStream final : public google::protobuf::io::ZeroCopyInputStream {
 public:
  SplicedStream(ModelBytes* bytes, const std::vector<Splice>& splices);

  bool Next(const void** data, int* size) override;
  void BackUp(int count) override;
  bool Skip(int count) override;
  int64_t ByteCount() const override { return count_; }

 private:
  ModelBytes& bytes_;
  std::vector<absl::string_view> parts_;
  size_t part_ = 0, within_ = 0;
  size_t released_ = 0;
  int64_t count_ = 0;
};

}  // namespace onward

#endif  // ONWARD_CORE_ONNX_IO_MODEL_BYTES_H_
