// SPDX-License-Identifier: Apache-2.0
#include "onward/tensor.h"

#include "absl/strings/str_cat.h"
#include "api/access.h"

namespace onward::api {
namespace {

absl::StatusOr<onward::Shape> CheckedShape(ElementType type, const Shape& shape) {
  const auto code = static_cast<int32_t>(type);
  if (type == ElementType::kUndefined || !IsKnownDType(code)) {
    return absl::InvalidArgumentError(absl::StrCat("a tensor cannot have elements of type number ",
                                                   code, "; take one of onward::ElementType"));
  }
  absl::StatusOr<int64_t> elements = CheckedElements(shape);
  if (!elements.ok()) return elements.status();
  return onward::Shape(absl::MakeConstSpan(shape));
}

}  // namespace

const char* ElementTypeName(ElementType type) { return DTypeName(static_cast<DType>(type)); }

Result<Tensor> Tensor::Zeros(ElementType type, const Shape& shape) {
  return Converted<Tensor>([&] { return CheckedShape(type, shape); },
                           [&](onward::Shape checked) {
                             return Access::ToTensor(onward::Tensor::Zeros(static_cast<DType>(type),
                                                                           std::move(checked)));
                           });
}

Result<Tensor> Tensor::View(ElementType type, const Shape& shape, void* data, size_t size,
                            std::shared_ptr<void> owner) {
  return Converted<Tensor>(
      [&]() -> absl::StatusOr<onward::Tensor> {
        absl::StatusOr<onward::Shape> checked = CheckedShape(type, shape);
        if (!checked.ok()) return checked.status();
        if (type == ElementType::kString) {
          return absl::UnimplementedError("a tensor of strings cannot view memory; use From");
        }
        const size_t needed = TensorBytes(static_cast<DType>(type), *checked);
        if (size != needed || (data == nullptr && size > 0)) {
          return absl::InvalidArgumentError(
              absl::StrCat("a tensor ", ElementTypeName(type), checked->ToString(), " takes ",
                           needed, " bytes, given are ", data == nullptr ? 0 : size));
        }
        return onward::Tensor(static_cast<DType>(type), *std::move(checked), data,
                              std::move(owner));
      },
      Access::ToTensor);
}

ElementType Tensor::element_type() const {
  return impl_ == nullptr ? ElementType::kUndefined
                          : static_cast<ElementType>(impl_->tensor.dtype());
}

const Shape& Tensor::shape() const {
  static const Shape none;
  return impl_ == nullptr ? none : impl_->shape;
}

int64_t Tensor::elements() const { return impl_ == nullptr ? 0 : impl_->tensor.elements(); }

void* Tensor::bytes() { return impl_ == nullptr ? nullptr : impl_->tensor.raw(); }
const void* Tensor::bytes() const { return impl_ == nullptr ? nullptr : impl_->tensor.raw(); }

size_t Tensor::byte_size() const {
  return impl_ == nullptr ? 0 : TensorBytes(impl_->tensor.dtype(), impl_->tensor.shape());
}

Result<Tensor> Tensor::Clone() const {
  return Guarded([&]() -> Result<Tensor> {
    return impl_ == nullptr ? Tensor() : Access::ToTensor(impl_->tensor.Clone());
  });
}

Status Tensor::ErrorOfType(ElementType wanted) const {
  return Status(StatusCode::kInvalidArgument,
                absl::StrCat("the tensor holds elements of type ", ElementTypeName(element_type()),
                             ", asked for were ", ElementTypeName(wanted)));
}

Status Tensor::ErrorOfCount(const Tensor& tensor, size_t values) {
  return Status(StatusCode::kInvalidArgument,
                absl::StrCat("a tensor of shape ", tensor.impl_->tensor.shape().ToString(), " has ",
                             tensor.elements(), " elements, given are ", values));
}

}  // namespace onward::api
