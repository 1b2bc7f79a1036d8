// SPDX-License-Identifier: Apache-2.0
// The large tensors of a model, beside its message: in memory, or where they lie in a
// mapped file. The message has a number in place of each one's values, so copying it
// copies no weights.
#ifndef ONWARD_CORE_ONNX_IO_WEIGHTS_H_
#define ONWARD_CORE_ONNX_IO_WEIGHTS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/file_descriptor.h"
#include "core/tensor/tensor.h"

namespace onward {

// Tensors of so many bytes are held outside the message.
inline constexpr size_t kHeldBytes = 1024;
// The key in TensorProto.external_data under which the message has a weight's number. It
// is never written to a file, and a file that has it is refused.
inline constexpr char kHeldKey[] = "onward.held";

// An open file, mapped for reading. Removed or replaced by another it stays as it was;
// cut short by somebody, reading from the mapping kills the process (SIGBUS), as with any
// mapped file.
class WeightFile {
 public:
  // `keep_open`: otherwise, once it is mapped, it takes none of the files a process may have
  // open, and is not noticed to be cut short.
  WeightFile(int fd, size_t size, dev_t device, ino_t inode, bool keep_open);
  ~WeightFile();
  WeightFile(const WeightFile&) = delete;
  WeightFile& operator=(const WeightFile&) = delete;

  size_t size() const { return size_; }
  // Null where it could not be mapped.
  char* data() const { return data_; }
  bool Read(char* to, size_t bytes, uint64_t offset) const;
  // Gives the memory of these pages back; who looks at them again reads them again.
  void Release(const char* from, size_t bytes) const;
  // An error if it is shorter than it was.
  absl::Status StillWhole() const;
  bool Is(dev_t device, ino_t inode) const { return device == device_ && inode == inode_; }

 private:
  std::unique_ptr<FileDescriptor> file_;  // null once closed
  size_t size_;
  dev_t device_;
  ino_t inode_;
  char* data_ = nullptr;
};

class Weights {
 public:
  struct Bytes {
    char* data = nullptr;
    size_t size = 0;
    std::shared_ptr<void> owner;             // keeps them alive
    bool shared = false;                     // others may know them by other ways than `owner`
    std::shared_ptr<const WeightFile> file;  // where they are from, if from a file of weights
    uint64_t offset = 0;                     // in `file`

    // Whether they are the file's own pages rather than a copy.
    bool mapped() const { return file != nullptr && owner.get() == file.get(); }
  };

  // Memory of its own, for the caller to fill.
  static Bytes New(size_t size);

  // Returns the number to find them by.
  int64_t Add(Bytes bytes);
  int64_t Add(const Tensor& tensor);
  // Null where there are none of that number.
  const Bytes* Find(int64_t number) const;
  // The values as a tensor that nobody else has. The number stands for nothing afterwards, and
  // values that only it stood for are moved, not copied.
  absl::StatusOr<Tensor> Take(int64_t number, DType dtype, const Shape& shape);

  // The files that weights are from, each once, and whether pages of it are in use.
  std::map<std::shared_ptr<const WeightFile>, bool> Files() const;
  // A function that gives back the memory of mapped pages in a range, for whoever has looked
  // at large weights and is done; other memory it leaves alone. Null if nothing is mapped.
  std::function<void(const void* data, size_t bytes)> PageReleaser() const;

 private:
  std::vector<Bytes> held_;
};

}  // namespace onward

#endif  // ONWARD_CORE_ONNX_IO_WEIGHTS_H_
