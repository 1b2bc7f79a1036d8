// SPDX-License-Identifier: Apache-2.0
// The rows of one array, one for each example, wherever they are: in memory, in a file, or
// made when they are asked for.
#ifndef ONWARD_DATA_ARRAYS_ROWS_H_
#define ONWARD_DATA_ARRAYS_ROWS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/dtype.h"
#include "core/base/shape.h"
#include "core/tensor/tensor.h"
#include "data/stored_bytes.h"

namespace onward {

// What it takes to have a row: reading ahead of the step pays from kFile on, a thread for a
// single row where it is decoded.
enum class RowCost { kMemory, kFile, kDecoding };

// Immutable; all functions may be called from several threads.
class RowSource {
 public:
  RowSource(int64_t count, DType dtype, Shape shape)
      : count_(count), dtype_(dtype), shape_(std::move(shape)), elements_(shape_.elements()) {}
  virtual ~RowSource() = default;

  int64_t count() const { return count_; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }  // of one row
  int64_t elements() const { return elements_; }
  size_t row_bytes() const { return static_cast<size_t>(elements_) * DTypeBits(dtype_) / 8; }

  // Where a row is in memory, aligned for its type; null where it has to be read.
  virtual const void* View(int64_t) const { return nullptr; }
  // Rows [first, first + count), which have to be there, one after the other. Strings are
  // always in view and are not read.
  virtual absl::Status Read(int64_t first, int64_t count, void* to) const = 0;
  // A random variation of one row; what it is depends on `key` alone.
  virtual absl::Status ReadVaried(int64_t row, uint64_t, void* to) const {
    return Read(row, 1, to);
  }
  virtual RowCost cost() const { return RowCost::kMemory; }

 private:
  int64_t count_;
  DType dtype_;
  Shape shape_;
  int64_t elements_;
};

// A source that may be copied.
class Rows {
 public:
  Rows() = default;
  // The first axis counts the rows. A tensor without axes has no rows: count() is -1.
  Rows(Tensor tensor);
  Rows(std::shared_ptr<const RowSource> source) : source_(std::move(source)) {}

  bool defined() const { return source_ != nullptr; }
  const RowSource& operator*() const { return *source_; }
  const RowSource* operator->() const { return source_.get(); }
  bool in_memory() const { return source_->count() < 1 || source_->View(0) != nullptr; }

 private:
  std::shared_ptr<const RowSource> source_;
};

// All rows as one tensor [count, ...].
absl::StatusOr<Tensor> ReadRows(const Rows& rows);

// How bytes of a file become the elements of a row; empty: they are the elements.
using ConvertBytes = std::function<void(const char* from, int64_t elements, void* to)>;

// Rows in a file, `stride` bytes apart. All of them have to lie within `bytes`.
struct StoredLayout {
  uint64_t offset = 0;
  uint64_t stride = 0;
  uint64_t row_bytes = 0;  // as stored
};
Rows StoredRows(StoredBytes bytes, const StoredLayout& layout, int64_t count, DType dtype,
                Shape shape, ConvertBytes convert = nullptr);

// Rows of one type and shape behind each other.
Rows ConcatenatedRows(std::vector<Rows> parts);

// The same elements in another shape.
Rows ReshapedRows(Rows rows, Shape shape);

// [C, H, W] as [H, W, C].
Rows ChannelsLastRows(Rows rows);

// The same numbers in another type. ConvertTensor has to succeed for every row.
Rows ConvertedRows(Rows rows, DType dtype);

}  // namespace onward

#endif  // ONWARD_DATA_ARRAYS_ROWS_H_
