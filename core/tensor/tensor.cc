// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/tensor.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "absl/strings/str_cat.h"
#include "core/base/memory.h"
#include "core/base/small_float.h"
#include "core/base/status.h"
#include "core/tensor/dispatch.h"
#include "core/tensor/held.h"
#include "core/tensor/packed.h"

namespace onward {
namespace {

constexpr size_t kAlignment = 64;

// What a tensor costs beside its elements, about: many small ones are not free.
constexpr size_t kBookkeeping = 64;

thread_local int64_t held_bytes = 0;

std::shared_ptr<void> AllocateAligned(size_t bytes) {
  if (!MemoryIsThere(bytes)) throw std::bad_alloc();
  const size_t rounded = (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  void* p = std::aligned_alloc(kAlignment, rounded);
  if (p == nullptr) throw std::bad_alloc();
  const auto counted = static_cast<int64_t>(rounded + kBookkeeping);
  held_bytes += counted;
  return std::shared_ptr<void>(p, [counted](void* q) {
    held_bytes -= counted;
    std::free(q);
  });
}

template <typename T>
std::vector<T> SmallNumbers(const Tensor& t) {
  const Tensor codes = Unpacked(t);
  const SmallValues& values = SmallValuesOf(t.dtype());
  std::vector<T> out;
  for (uint8_t code : codes.values<uint8_t>()) out.push_back(static_cast<T>(values[code]));
  return out;
}

}  // namespace

int64_t HeldTensorBytes() { return held_bytes; }

size_t TensorBytes(DType dtype, const Shape& shape) {
  return (static_cast<size_t>(shape.elements()) * DTypeBits(dtype) + 7) / 8;
}

Tensor::Tensor(DType dtype, Shape shape) : dtype_(dtype), shape_(std::move(shape)) {
  if (dtype == DType::kString) {
    if (!MemoryIsThere(static_cast<size_t>(shape_.elements()) * sizeof(std::string))) {
      throw std::bad_alloc();
    }
    auto strings = std::make_shared<std::vector<std::string>>(shape_.elements());
    data_ = strings->data();
    owner_ = std::move(strings);
  } else {
    owner_ = AllocateAligned(TensorBytes(dtype, shape_));
    data_ = owner_.get();
  }
}

Tensor::Tensor(DType dtype, Shape shape, void* data, std::shared_ptr<void> owner, int place)
    : dtype_(dtype),
      place_(place),
      shape_(std::move(shape)),
      data_(data),
      owner_(std::move(owner)) {}

Tensor Tensor::Zeros(DType dtype, Shape shape) {
  Tensor t(dtype, std::move(shape));
  if (dtype != DType::kString) std::memset(t.raw(), 0, t.bytes());
  return t;
}

size_t Tensor::bytes() const { return TensorBytes(dtype_, shape_); }

Tensor Tensor::Clone() const {
  if (!defined()) return {};
  CheckInvariant(place_ == 0, "only who made a tensor elsewhere can copy it");
  Tensor copy(dtype_, shape_);
  if (dtype_ == DType::kString) {
    const auto v = values<std::string>();
    size_t letters = 0;
    for (const std::string& text : v) letters += text.size();
    if (!MemoryIsThere(letters)) throw std::bad_alloc();
    std::copy(v.begin(), v.end(), copy.data<std::string>());
  } else {
    std::memcpy(copy.raw(), raw(), bytes());
  }
  return copy;
}

Tensor Tensor::Reshaped(Shape shape) const {
  CheckInvariant(shape.elements() == elements(), "Reshaped keeps the number of elements");
  return Tensor(dtype_, std::move(shape), data_, owner_, place_);
}

absl::StatusOr<std::vector<int64_t>> ToInts(const Tensor& t) {
  if (IsSmallInteger(t.dtype())) return SmallNumbers<int64_t>(t);
  std::vector<int64_t> out;
  const bool known = DispatchIntegral(t.dtype(), [&]<typename T>() {
    for (T v : t.values<T>()) out.push_back(static_cast<int64_t>(v));
  });
  if (!known) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected an integer tensor, got ", DTypeName(t.dtype())));
  }
  return out;
}

absl::StatusOr<std::vector<double>> ToDoubles(const Tensor& t) {
  if (IsSmall(t.dtype())) return SmallNumbers<double>(t);
  std::vector<double> out;
  const bool known = DispatchNumeric(t.dtype(), [&]<typename T>() {
    for (T v : t.values<T>()) out.push_back(static_cast<double>(v));
  });
  if (!known) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a numeric tensor, got ", DTypeName(t.dtype())));
  }
  return out;
}

Tensor ScalarOf(DType dtype, double value, Shape shape) {
  Tensor t = Tensor::Zeros(dtype, std::move(shape));
  if (IsSmall(dtype)) {
    uint8_t code = static_cast<uint8_t>(static_cast<int64_t>(value));
    const float rounded = static_cast<float>(value);
    if (IsSmallFloat(dtype)) EncodeSmallFloats(dtype, &rounded, 1, {}, &code);
    PackCodes(&code, 0, 1, &t);
  }
  DispatchNumeric(dtype, [&]<typename T>() { *t.data<T>() = FromDouble<T>(value); });
  return t;
}

Tensor RoundedTo(DType dtype, const Tensor& t) {
  Tensor out(dtype, t.shape());
  DispatchFloating(t.dtype(), [&]<typename From>() {
    DispatchFloating(dtype, [&]<typename To>() {
      const From* from = t.data<From>();
      To* to = out.data<To>();
      for (int64_t i = 0; i < t.elements(); ++i)
        to[i] = FromDouble<To>(static_cast<double>(from[i]));
    });
  });
  return out;
}

bool Identical(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.dtype() == DType::kString) return a.values<std::string>() == b.values<std::string>();
  return a.raw() == b.raw() || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

}  // namespace onward
