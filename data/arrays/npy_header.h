// SPDX-License-Identifier: Apache-2.0
// The header of an .npy array, a Python dictionary:
//   {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
#ifndef ONWARD_DATA_ARRAYS_NPY_HEADER_H_
#define ONWARD_DATA_ARRAYS_NPY_HEADER_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/dtype.h"
#include "core/base/shape.h"

namespace onward {

struct NpyHeader {
  DType dtype = DType::kUndefined;
  int item_bytes = 0;
  int swap_unit = 1;  // bytes to reverse at a time; 1: native order
  bool utf32 = false;
  bool fortran = false;
  Shape shape;
};

absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view text, absl::string_view name);

// "NAME: not a readable .npy array: WHAT".
absl::Status NpyError(absl::string_view name, absl::string_view what);

}  // namespace onward

#endif  // ONWARD_DATA_ARRAYS_NPY_HEADER_H_
