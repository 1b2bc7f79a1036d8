// SPDX-License-Identifier: Apache-2.0
// How Winograd's convolutions cut their work: tiles, blocks of rows, parts.
#ifndef ONWARD_CORE_OPS_CONV_WINOGRAD_WORK_H_
#define ONWARD_CORE_OPS_CONV_WINOGRAD_WORK_H_

#include <cstdint>

#include "core/base/division.h"
#include "core/base/parallel.h"

namespace onward::winograd {

// Work of fewer multiplications stays on one thread.
inline constexpr int64_t kSmallWork = 1 << 20;
// Buffers leave this many floats after each of the 36 positions, so that these
// do not meet in the same set of a cache.
inline constexpr int64_t kGap = 16;

// Walks the tiles of a batch in order: image, row, column.
struct TileCursor {
  int64_t n, y, x, rows, columns;

  TileCursor(int64_t tile, int64_t rows, int64_t columns)
      : n(tile / (rows * columns)),
        y(tile / columns % rows),
        x(tile % columns),
        rows(rows),
        columns(columns) {}
  void Next() {
    if (++x < columns) return;
    x = 0;
    if (++y < rows) return;
    y = 0;
    ++n;
  }
};

// `n` rows in as few blocks of at most `most` as there can be, of nearly equal size.
class RowBlocks {
 public:
  RowBlocks(int64_t n, int64_t most) : n_(n), count_(CeilDiv(n, most)) {}
  int64_t count() const { return count_; }
  int64_t first(int64_t block) const { return n_ * block / count_; }
  int rows(int64_t block) const { return static_cast<int>(first(block + 1) - first(block)); }

 private:
  int64_t n_, count_;
};

}  // namespace onward::winograd

#endif  // ONWARD_CORE_OPS_CONV_WINOGRAD_WORK_H_
