// SPDX-License-Identifier: Apache-2.0
#include "data/arrays/rows.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "data/dataset.h"
#include "data/file_bytes.h"

namespace onward {
namespace {

Shape RowShape(const Tensor& t) {
  return t.shape().rank() == 0 ? Shape() : Shape(t.shape().dims().subspan(1));
}

class TensorRows : public RowSource {
 public:
  explicit TensorRows(Tensor t)
      : RowSource(t.shape().rank() == 0 ? -1 : t.shape()[0], t.dtype(), RowShape(t)),
        tensor_(std::move(t)) {}

  const void* View(int64_t row) const override {
    if (dtype() == DType::kString) return tensor_.data<std::string>() + row * elements();
    return tensor_.data<char>() + static_cast<size_t>(row) * row_bytes();
  }
  absl::Status Read(int64_t first, int64_t count, void* to) const override {
    std::memcpy(to, View(first), static_cast<size_t>(count) * row_bytes());
    return absl::OkStatus();
  }

 private:
  Tensor tensor_;
};

bool IsAligned(const void* p, size_t item) {
  return reinterpret_cast<uintptr_t>(p) % std::max<size_t>(item, 1) == 0;
}

class FileRows : public RowSource {
 public:
  FileRows(StoredBytes bytes, const StoredLayout& layout, int64_t count, DType dtype, Shape shape,
           ConvertBytes convert)
      : RowSource(count, dtype, std::move(shape)),
        bytes_(std::move(bytes)),
        layout_(layout),
        convert_(std::move(convert)) {
    const size_t item = DTypeBits(dtype) / 8;
    const char* memory = bytes_.memory();
    in_view_ = memory != nullptr && convert_ == nullptr &&
               IsAligned(memory + layout_.offset, item) && layout_.stride % item == 0;
  }

  const void* View(int64_t row) const override {
    return in_view_ ? bytes_.memory() + Begin(row) : nullptr;
  }

  absl::Status Read(int64_t first, int64_t count, void* to) const override {
    if (convert_ == nullptr && layout_.stride == layout_.row_bytes) {
      return bytes_.Read(Begin(first), static_cast<size_t>(count) * layout_.row_bytes, to);
    }
    std::string scratch(bytes_.memory() == nullptr ? layout_.row_bytes : 0, '\0');
    for (int64_t i = 0; i < count; ++i) {
      char* row = static_cast<char*>(to) + static_cast<size_t>(i) * row_bytes();
      if (convert_ == nullptr) {
        ONWARD_RETURN_IF_ERROR(bytes_.Read(Begin(first + i), layout_.row_bytes, row));
        continue;
      }
      const char* from = bytes_.memory() + Begin(first + i);
      if (bytes_.memory() == nullptr) {
        ONWARD_RETURN_IF_ERROR(bytes_.Read(Begin(first + i), layout_.row_bytes, scratch.data()));
        from = scratch.data();
      }
      convert_(from, elements(), row);
    }
    return absl::OkStatus();
  }
  RowCost cost() const override {
    return bytes_.memory() == nullptr ? RowCost::kFile : RowCost::kMemory;
  }

 private:
  uint64_t Begin(int64_t row) const {
    return layout_.offset + static_cast<uint64_t>(row) * layout_.stride;
  }

  StoredBytes bytes_;
  StoredLayout layout_;
  ConvertBytes convert_;
  bool in_view_ = false;
};

class Concatenated : public RowSource {
 public:
  Concatenated(std::vector<Rows> parts, int64_t count)
      : RowSource(count, parts[0]->dtype(), parts[0]->shape()), parts_(std::move(parts)) {
    for (const Rows& part : parts_) {
      in_memory_ &= part.in_memory();
      cost_ = std::max(cost_, part->cost());
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) + part->count());
    }
  }

  const void* View(int64_t row) const override {
    if (!in_memory_) return nullptr;
    const size_t part = PartOf(row);
    return parts_[part]->View(row - Begin(part));
  }
  absl::Status Read(int64_t first, int64_t count, void* to) const override {
    while (count > 0) {
      const size_t part = PartOf(first);
      const int64_t here = std::min(count, ends_[part] - first);
      ONWARD_RETURN_IF_ERROR(parts_[part]->Read(first - Begin(part), here, to));
      to = static_cast<char*>(to) + static_cast<size_t>(here) * row_bytes();
      first += here;
      count -= here;
    }
    return absl::OkStatus();
  }
  RowCost cost() const override { return cost_; }

 private:
  size_t PartOf(int64_t row) const {
    return static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), row) - ends_.begin());
  }
  int64_t Begin(size_t part) const { return part == 0 ? 0 : ends_[part - 1]; }

  std::vector<Rows> parts_;
  std::vector<int64_t> ends_;
  bool in_memory_ = true;
  RowCost cost_ = RowCost::kMemory;
};

class Reshaped : public RowSource {
 public:
  Reshaped(Rows rows, Shape shape)
      : RowSource(rows->count(), rows->dtype(), std::move(shape)), rows_(std::move(rows)) {}

  const void* View(int64_t row) const override { return rows_->View(row); }
  absl::Status Read(int64_t first, int64_t count, void* to) const override {
    return rows_->Read(first, count, to);
  }
  absl::Status ReadVaried(int64_t row, uint64_t key, void* to) const override {
    return rows_->ReadVaried(row, key, to);
  }
  RowCost cost() const override { return rows_->cost(); }

 private:
  Rows rows_;
};

// Rows that become others by a function of each.
class Remade : public RowSource {
 public:
  Remade(Rows rows, DType dtype, Shape shape)
      : RowSource(rows->count(), dtype, std::move(shape)), rows_(std::move(rows)) {}

  absl::Status Read(int64_t first, int64_t count, void* to) const override {
    std::string scratch(rows_->View(first) == nullptr ? rows_->row_bytes() : 0, '\0');
    for (int64_t i = 0; i < count; ++i) {
      const void* from = rows_->View(first + i);
      if (from == nullptr) {
        ONWARD_RETURN_IF_ERROR(rows_->Read(first + i, 1, scratch.data()));
        from = scratch.data();
      }
      ONWARD_RETURN_IF_ERROR(
          Remake(from, static_cast<char*>(to) + static_cast<size_t>(i) * row_bytes()));
    }
    return absl::OkStatus();
  }
  absl::Status ReadVaried(int64_t row, uint64_t key, void* to) const override {
    std::string scratch(rows_->row_bytes(), '\0');
    ONWARD_RETURN_IF_ERROR(rows_->ReadVaried(row, key, scratch.data()));
    return Remake(scratch.data(), to);
  }
  RowCost cost() const override { return rows_->cost(); }

 protected:
  virtual absl::Status Remake(const void* from, void* to) const = 0;
  const RowSource& rows() const { return *rows_; }

 private:
  Rows rows_;
};

class ChannelsLast : public Remade {
 public:
  explicit ChannelsLast(const Rows& rows)
      : Remade(rows, rows->dtype(), {rows->shape()[1], rows->shape()[2], rows->shape()[0]}) {}

 private:
  absl::Status Remake(const void* from, void* to) const override {
    const int64_t channels = shape()[2], area = shape()[0] * shape()[1];
    const size_t item = DTypeBits(dtype()) / 8;
    for (int64_t c = 0; c < channels; ++c) {
      const char* plane = static_cast<const char*>(from) + c * area * item;
      char* out = static_cast<char*>(to) + c * item;
      for (int64_t p = 0; p < area; ++p) {
        std::memcpy(out + p * channels * item, plane + p * item, item);
      }
    }
    return absl::OkStatus();
  }
};

class Converted : public Remade {
 public:
  Converted(const Rows& rows, DType dtype) : Remade(rows, dtype, rows->shape()) {}

 private:
  absl::Status Remake(const void* from, void* to) const override {
    const Tensor row(rows().dtype(), shape(), const_cast<void*>(from), nullptr);
    ONWARD_ASSIGN_OR_RETURN(const Tensor converted, ConvertTensor(row, dtype()));
    std::memcpy(to, converted.raw(), row_bytes());
    return absl::OkStatus();
  }
};

}  // namespace

Rows::Rows(Tensor tensor) : source_(std::make_shared<TensorRows>(std::move(tensor))) {}

absl::StatusOr<Tensor> ReadRows(const Rows& rows) {
  ONWARD_RETURN_IF_ERROR(CheckFitsInMemory(
      "all rows together", static_cast<uint64_t>(rows->count()) * rows->row_bytes()));
  Tensor all(rows->dtype(), BatchShape(rows->count(), rows->shape()));
  if (rows->dtype() == DType::kString) {
    for (int64_t i = 0; i < rows->count(); ++i) {
      const auto* from = static_cast<const std::string*>(rows->View(i));
      std::copy(from, from + rows->elements(), all.data<std::string>() + i * rows->elements());
    }
    return all;
  }
  if (rows->count() > 0) ONWARD_RETURN_IF_ERROR(rows->Read(0, rows->count(), all.raw()));
  return all;
}

Rows StoredRows(StoredBytes bytes, const StoredLayout& layout, int64_t count, DType dtype,
                Shape shape, ConvertBytes convert) {
  return Rows(std::make_shared<FileRows>(std::move(bytes), layout, count, dtype, std::move(shape),
                                         std::move(convert)));
}

Rows ConcatenatedRows(std::vector<Rows> parts) {
  if (parts.size() == 1) return parts[0];
  int64_t count = 0;
  for (const Rows& part : parts) count += part->count();
  return Rows(std::make_shared<Concatenated>(std::move(parts), count));
}

Rows ReshapedRows(Rows rows, Shape shape) {
  return Rows(std::make_shared<Reshaped>(std::move(rows), std::move(shape)));
}

Rows ChannelsLastRows(Rows rows) { return Rows(std::make_shared<ChannelsLast>(rows)); }

Rows ConvertedRows(Rows rows, DType dtype) {
  if (rows->dtype() == dtype) return rows;
  return Rows(std::make_shared<Converted>(rows, dtype));
}

}  // namespace onward
