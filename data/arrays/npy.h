// SPDX-License-Identifier: Apache-2.0
// Tensors in NumPy's files: .npy (format versions 1 to 3) and .npz, whole or by rows.
#ifndef ONWARD_DATA_ARRAYS_NPY_H_
#define ONWARD_DATA_ARRAYS_NPY_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/tensor/tensor.h"
#include "data/arrays/npy_header.h"
#include "data/arrays/rows.h"
#include "data/arrays/zip.h"
#include "data/stored_bytes.h"

namespace onward {

// Either byte order; Fortran order is transposed; 'U' and 'S' arrays become
// string tensors. Arrays of Python objects and records are errors.
absl::StatusOr<Tensor> ReadNpy(const std::string& path);
// The same from bytes in memory; `name` is what messages call them.
absl::StatusOr<Tensor> ParseNpy(absl::string_view bytes, absl::string_view name);

// An array whose header has been read and agrees with the bytes behind it.
struct NpyArray {
  NpyHeader header;
  StoredBytes elements;
};
absl::StatusOr<NpyArray> OpenNpy(const StoredBytes& file);
// Its rows, read when they are asked for; text, and what is in Fortran order, is read now.
absl::StatusOr<Rows> NpyRows(const NpyArray& array);

// bfloat16 is written as float32 and integers narrower than a byte as int8 or
// uint8, since NumPy lacks these types; float8 and smaller floats are errors.
absl::StatusOr<std::string> SerializeNpy(const Tensor& tensor);
absl::Status WriteNpy(const std::string& path, const Tensor& tensor);

// An .npz file: arrays by name (without ".npy"), in file order.
class NpzFile {
 public:
  static absl::StatusOr<NpzFile> Open(const std::string& path);

  const std::vector<std::string>& names() const { return names_; }
  // Compressed ones are unpacked now, as class Unpacking does.
  absl::StatusOr<NpyArray> Array(size_t index) const;

 private:
  StoredBytes file_;
  std::vector<std::string> names_;
  std::vector<ZipEntry> entries_;
};

absl::StatusOr<std::vector<std::pair<std::string, Tensor>>> ReadNpz(const std::string& path);

}  // namespace onward

#endif  // ONWARD_DATA_ARRAYS_NPY_H_
