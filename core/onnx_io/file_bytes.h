// SPDX-License-Identifier: Apache-2.0
// The bytes of a model file while it is parsed. They are given back to the
// system as the parser moves on, so that reading a large model does not take
// twice its size.
#ifndef ONWARD_CORE_ONNX_IO_FILE_BYTES_H_
#define ONWARD_CORE_ONNX_IO_FILE_BYTES_H_

#include <google/protobuf/io/zero_copy_stream.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace onward {

class ModelFileBytes {
 public:
  // A regular file of at most `limit` bytes, not empty.
  static absl::StatusOr<ModelFileBytes> Read(const std::string& path, int64_t limit);

  ModelFileBytes(ModelFileBytes&& other) noexcept;
  ModelFileBytes& operator=(ModelFileBytes&&) = delete;
  ~ModelFileBytes();

  absl::string_view view() const { return {data_, size_}; }

 private:
  friend class ReleasingStream;
  ModelFileBytes(char* data, size_t size) : data_(data), size_(size) {}

  char* data_;
  size_t size_;
};

// Goes through the bytes once; what it has passed is gone from view().
class ReleasingStream final : public google::protobuf::io::ZeroCopyInputStream {
 public:
  explicit ReleasingStream(ModelFileBytes* bytes) : bytes_(*bytes) {}

  bool Next(const void** data, int* size) override;
  void BackUp(int count) override { at_ -= static_cast<size_t>(count); }
  bool Skip(int count) override;
  int64_t ByteCount() const override { return static_cast<int64_t>(at_); }

 private:
  ModelFileBytes& bytes_;
  size_t at_ = 0;
  size_t released_ = 0;
};

}  // namespace onward

#endif  // ONWARD_CORE_ONNX_IO_FILE_BYTES_H_
