// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/elements.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

namespace onward {

absl::Status CheckWholeBytes(DType dtype, const char* what) {
  if (dtype == DType::kString || DTypeBits(dtype) % 8 == 0) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat(what, " is ", DTypeName(dtype), "; types below a byte are not supported here"));
}

void CopyElements(const Tensor& from, int64_t from_begin, int64_t count, Tensor* to,
                  int64_t to_begin) {
  if (from.dtype() == DType::kString) {
    std::copy_n(from.data<std::string>() + from_begin, count, to->data<std::string>() + to_begin);
    return;
  }
  const int64_t size = DTypeBits(from.dtype()) / 8;
  if (count == 0) return;
  std::memcpy(to->data<char>() + to_begin * size, from.data<char>() + from_begin * size,
              count * size);
}

Tensor SliceOf(const Tensor& tensor, int64_t i) {
  const Shape shape(tensor.shape().dims().subspan(1));
  const int64_t size = tensor.dtype() == DType::kString ? static_cast<int64_t>(sizeof(std::string))
                                                        : DTypeBits(tensor.dtype()) / 8;
  char* data = static_cast<char*>(const_cast<void*>(tensor.raw()));
  return Tensor(tensor.dtype(), shape, data + i * shape.elements() * size, nullptr, tensor.place());
}

}  // namespace onward
