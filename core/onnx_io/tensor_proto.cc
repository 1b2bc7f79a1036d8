// SPDX-License-Identifier: Apache-2.0
// TensorProto and SparseTensorProto to Tensor and back, every size checked
// before anything is allocated.
#include <cstdint>
#include <cstring>
#include <new>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/onnx_io/proto.h"
#include "core/tensor/dispatch.h"
#include "core/tensor/packed.h"

namespace onward {
namespace {

// A few bytes may stand for this many zeros.
constexpr int64_t kMaxDenseBytes = int64_t{1} << 30;

void ClearValues(onnx::TensorProto* proto) {
  proto->clear_float_data();
  proto->clear_int32_data();
  proto->clear_int64_data();
  proto->clear_double_data();
  proto->clear_uint64_data();
  proto->clear_raw_data();
  proto->clear_external_data();
  proto->clear_data_location();
}

absl::Status Bad(const onnx::TensorProto& p, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("tensor '", p.name(), "': ", what));
}

int DataFields(const onnx::TensorProto& p) {
  return (p.float_data_size() > 0) + (p.int32_data_size() > 0) + (p.string_data_size() > 0) +
         (p.int64_data_size() > 0) + (p.double_data_size() > 0) + (p.uint64_data_size() > 0) +
         (p.has_raw_data() && !p.raw_data().empty());
}

template <typename Field, typename T>
absl::Status CopyField(const onnx::TensorProto& p, const Field& field, int64_t n, T* out) {
  if (field.size() != n) {
    return Bad(p, absl::StrCat("has ", field.size(), " values, but its shape needs ", n));
  }
  for (int i = 0; i < field.size(); ++i) out[i] = static_cast<T>(field.Get(i));
  return absl::OkStatus();
}

// Values kept in typed fields; 16-bit floats and everything narrower than 32
// bits stand in int32_data.
absl::Status CopyTyped(const onnx::TensorProto& p, Tensor* t) {
  const int64_t n = t->elements();
  switch (t->dtype()) {
    case DType::kFloat: return CopyField(p, p.float_data(), n, t->data<float>());
    case DType::kDouble: return CopyField(p, p.double_data(), n, t->data<double>());
    case DType::kInt64: return CopyField(p, p.int64_data(), n, t->data<int64_t>());
    case DType::kUint64: return CopyField(p, p.uint64_data(), n, t->data<uint64_t>());
    case DType::kUint32: return CopyField(p, p.uint64_data(), n, t->data<uint32_t>());
    case DType::kInt32: return CopyField(p, p.int32_data(), n, t->data<int32_t>());
    case DType::kComplex64: return CopyField(p, p.float_data(), 2 * n, t->data<float>());
    case DType::kComplex128: return CopyField(p, p.double_data(), 2 * n, t->data<double>());
    default: break;
  }
  if (t->dtype() == DType::kBool) {
    if (p.int32_data_size() != n) return Bad(p, "has the wrong number of values");
    for (int64_t i = 0; i < n; ++i) t->data<bool>()[i] = p.int32_data(static_cast<int>(i)) != 0;
    return absl::OkStatus();
  }
  const int bits = DTypeBits(t->dtype());
  if (bits == 16) return CopyField(p, p.int32_data(), n, t->data<uint16_t>());
  if (bits == 8) return CopyField(p, p.int32_data(), n, t->data<uint8_t>());
  if (bits == 4 || bits == 2) {
    return CopyField(p, p.int32_data(), static_cast<int64_t>(t->bytes()), t->data<uint8_t>());
  }
  if (IsPacked(t->dtype())) {  // 6 bits: here, unlike in raw_data, one element per entry
    Tensor codes(DType::kUint8, t->shape());
    ONWARD_RETURN_IF_ERROR(CopyField(p, p.int32_data(), n, codes.data<uint8_t>()));
    PackCodes(codes.data<uint8_t>(), 0, n, t);
    return absl::OkStatus();
  }
  return absl::UnimplementedError(absl::StrCat("tensor '", p.name(), "': type ",
                                               DTypeName(t->dtype()),
                                               " outside raw_data is not supported"));
}

absl::Status CopyStrings(const onnx::TensorProto& p, Tensor* t) {
  if (p.has_raw_data() && !p.raw_data().empty()) return Bad(p, "strings cannot be in raw_data");
  if (p.string_data_size() != t->elements()) {
    return Bad(p, absl::StrCat("has ", p.string_data_size(), " strings, but its shape needs ",
                               t->elements()));
  }
  for (int i = 0; i < p.string_data_size(); ++i) t->data<std::string>()[i] = p.string_data(i);
  return absl::OkStatus();
}

// A copy with 0 and 1 alone: files may have other bytes for true.
Tensor Normalized(const Tensor& bools) {
  Tensor t = bools.Clone();
  for (size_t i = 0; i < t.bytes(); ++i) t.data<uint8_t>()[i] = t.data<uint8_t>()[i] != 0;
  return t;
}

absl::StatusOr<Tensor> ReadTensor(const onnx::TensorProto& p, const ExternalData* external) {
  if (!IsKnownDType(p.data_type())) {
    return Bad(p, absl::StrCat("has the unknown element type ", p.data_type()));
  }
  const auto dtype = static_cast<DType>(p.data_type());
  if (p.has_segment()) return Bad(p, "segmented tensors are not supported");
  auto elements = CheckedElements(absl::MakeConstSpan(p.dims().data(), p.dims_size()));
  if (!elements.ok()) return Bad(p, elements.status().message());
  const Shape shape(absl::MakeConstSpan(p.dims().data(), p.dims_size()));
  const size_t bytes = TensorBytes(dtype, shape);
  if (DataFields(p) > 1) return Bad(p, "keeps its values in more than one place");
  ONWARD_ASSIGN_OR_RETURN(std::optional<Weights::Bytes> outside, OutsideBytes(p, external));
  if (outside.has_value()) {
    // Nobody writes to a tensor that came from a model.
    Tensor t(dtype, shape, outside->data, outside->owner);
    return dtype == DType::kBool ? Normalized(t) : t;
  }
  const size_t present = p.has_raw_data() ? p.raw_data().size() : 0;
  if (present > 0 && dtype != DType::kString) {
    if (present != bytes) {
      return Bad(p, absl::StrCat("raw_data has ", present, " bytes, but ", DTypeName(dtype),
                                 shape.ToString(), " needs ", bytes));
    }
    const Tensor view(dtype, shape, const_cast<char*>(p.raw_data().data()), nullptr);
    return dtype == DType::kBool ? Normalized(view) : view.Clone();
  }
  // A typed field holds at least one byte per element, so check before allocating.
  const int64_t listed = static_cast<int64_t>(p.float_data_size()) + p.int32_data_size() +
                         p.string_data_size() + p.int64_data_size() + p.double_data_size() +
                         p.uint64_data_size();
  if (*elements > 0 && listed == 0)
    return Bad(p, absl::StrCat("has no values; its shape needs ", *elements));
  if (*elements > 8 * listed + 8) {
    return Bad(p, absl::StrCat("has ", listed, " values, but its shape needs ", *elements));
  }
  Tensor t(dtype, shape);
  if (*elements == 0 && listed == 0) return t;
  ONWARD_RETURN_IF_ERROR(dtype == DType::kString ? CopyStrings(p, &t) : CopyTyped(p, &t));
  return t;
}

}  // namespace

absl::StatusOr<Tensor> TensorFromProto(const onnx::TensorProto& p, const ExternalData* external) {
  try {
    return ReadTensor(p, external);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat("tensor '", p.name(), "': out of memory"));
  }
}

absl::StatusOr<Tensor> SparseFromProto(const onnx::SparseTensorProto& p,
                                       const ExternalData* external) {
  ONWARD_ASSIGN_OR_RETURN(Tensor values, TensorFromProto(p.values(), external));
  ONWARD_ASSIGN_OR_RETURN(Tensor indices, TensorFromProto(p.indices(), external));
  auto bad = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("sparse tensor '", p.values().name(), "': ", what));
  };
  ONWARD_ASSIGN_OR_RETURN(int64_t total,
                          CheckedElements(absl::MakeConstSpan(p.dims().data(), p.dims_size())));
  const Shape shape(absl::MakeConstSpan(p.dims().data(), p.dims_size()));
  if (total > kMaxDenseBytes || TensorBytes(values.dtype(), shape) > kMaxDenseBytes) {
    return bad("is too large to be made dense");
  }
  if (values.shape().rank() != 1 || indices.dtype() != DType::kInt64) {
    return bad("needs 1-D values and int64 indices");
  }
  const int64_t n = values.elements();
  const bool linear = indices.shape().rank() == 1;
  if (linear ? indices.shape()[0] != n
             : indices.shape() != Shape{n, static_cast<int64_t>(shape.rank())}) {
    return bad("indices and values do not match");
  }
  if (values.dtype() == DType::kString || DTypeBits(values.dtype()) < 8)
    return bad("has an unsupported type");
  Tensor dense = Tensor::Zeros(values.dtype(), shape);
  const size_t width = DTypeBits(values.dtype()) / 8;
  const auto strides = shape.Strides();
  int64_t previous = -1;
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = 0;
    if (linear) {
      at = indices.data<int64_t>()[i];
    } else {
      for (int d = 0; d < shape.rank(); ++d) {
        const int64_t k = indices.data<int64_t>()[i * shape.rank() + d];
        if (k < 0 || k >= shape[d]) return bad("has an index out of range");
        at += k * strides[d];
      }
    }
    if (at < 0 || at >= total) return bad("has an index out of range");
    if (at <= previous) return bad("indices must be sorted and unique");
    previous = at;
    std::memcpy(dense.data<char>() + at * width, values.data<char>() + i * width, width);
  }
  return dense;
}

void TensorToProto(const Tensor& tensor, const std::string& name, onnx::TensorProto* proto,
                   Weights* held) {
  proto->Clear();
  proto->set_name(name);
  proto->set_data_type(static_cast<int32_t>(tensor.dtype()));
  for (int64_t d : tensor.shape()) proto->add_dims(d);
  if (tensor.dtype() == DType::kString) {
    for (const std::string& s : tensor.values<std::string>()) proto->add_string_data(s);
  } else {
    ReplaceValues(tensor, proto, held);
  }
}

void ReplaceValues(const Tensor& tensor, onnx::TensorProto* proto, Weights* held) {
  if (held != nullptr && tensor.bytes() >= kHeldBytes) {
    SetHeld(held->Add(tensor), proto);
    return;
  }
  ClearValues(proto);
  proto->set_raw_data(tensor.raw(), tensor.bytes());
}

std::optional<int64_t> HeldNumber(const onnx::TensorProto& p) {
  for (const auto& entry : p.external_data()) {
    if (entry.key() != kHeldKey) continue;
    int64_t number = -1;
    return absl::SimpleAtoi(entry.value(), &number) ? number : -1;
  }
  return std::nullopt;
}

void SetHeld(int64_t number, onnx::TensorProto* proto) {
  ClearValues(proto);
  auto* entry = proto->add_external_data();
  entry->set_key(kHeldKey);
  entry->set_value(absl::StrCat(number));
}

absl::StatusOr<std::optional<Weights::Bytes>> OutsideBytes(const onnx::TensorProto& p,
                                                           const ExternalData* external) {
  const std::optional<int64_t> number = HeldNumber(p);
  if (!number.has_value() && !IsExternal(p)) return std::optional<Weights::Bytes>();
  const auto dtype = static_cast<DType>(p.data_type());
  auto elements = CheckedElements(absl::MakeConstSpan(p.dims().data(), p.dims_size()));
  if (!elements.ok()) return Bad(p, elements.status().message());
  if (!IsKnownDType(p.data_type())) return Bad(p, "has an unknown element type");
  const Shape shape(absl::MakeConstSpan(p.dims().data(), p.dims_size()));
  const size_t bytes = TensorBytes(dtype, shape);
  if (DataFields(p) > 0 || (number.has_value() && (IsExternal(p) || p.external_data_size() != 1)))
    return Bad(p, "keeps its values in more than one place");
  if (!number.has_value()) {
    if (external == nullptr) return Bad(p, "external data is not allowed here");
    if (dtype == DType::kString) return Bad(p, "strings cannot be external");
    std::vector<ExternalKey> entries;
    for (const auto& e : p.external_data()) entries.push_back({e.key(), e.value()});
    auto got = external->Get(entries, bytes);
    if (!got.ok()) return Annotate(got.status(), absl::StrCat("tensor '", p.name(), "'"));
    return std::optional<Weights::Bytes>(*std::move(got));
  }
  if (dtype == DType::kString) return Bad(p, "strings cannot be in raw_data");
  const Weights::Bytes* found = external == nullptr || external->held() == nullptr
                                    ? nullptr
                                    : external->held()->Find(*number);
  if (found == nullptr) return Bad(p, "has no values");
  if (found->size != bytes) {
    return Bad(p, absl::StrCat("raw_data has ", found->size, " bytes, but ", DTypeName(dtype),
                               shape.ToString(), " needs ", bytes));
  }
  return std::optional<Weights::Bytes>(*found);
}

}  // namespace onward
