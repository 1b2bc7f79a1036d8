// SPDX-License-Identifier: Apache-2.0
// Tensors in NumPy's files: .npy (format versions 1 to 3) and .npz.
#ifndef ONWARD_DATA_ARRAYS_NPY_H_
#define ONWARD_DATA_ARRAYS_NPY_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/tensor/tensor.h"

namespace onward {

// Either byte order; Fortran order is transposed; 'U' and 'S' arrays become
// string tensors. Arrays of Python objects and records are errors.
absl::StatusOr<Tensor> ReadNpy(const std::string& path);
// The same from bytes in memory; `name` is what messages call them.
absl::StatusOr<Tensor> ParseNpy(absl::string_view bytes, absl::string_view name);

// bfloat16 is written as float32 and integers narrower than a byte as int8 or
// uint8, since NumPy lacks these types; float8 and smaller floats are errors.
absl::StatusOr<std::string> SerializeNpy(const Tensor& tensor);
absl::Status WriteNpy(const std::string& path, const Tensor& tensor);

// The arrays of an .npz file by name (without ".npy"), in file order.
absl::StatusOr<std::vector<std::pair<std::string, Tensor>>> ReadNpz(const std::string& path);

}  // namespace onward

#endif  // ONWARD_DATA_ARRAYS_NPY_H_
