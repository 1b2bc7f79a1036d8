// SPDX-License-Identifier: Apache-2.0
// The input of a convolution of bytes, laid out so that what one weight meets, from one output
// to the next, stands side by side: with its padding, and split by the strides. A row of
// outputs is then followed by columns that mean nothing, up to the length of a line.
#ifndef ONWARD_CORE_OPS_QUANTIZE_BYTE_PLANES_H_
#define ONWARD_CORE_OPS_QUANTIZE_BYTE_PLANES_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/device/plan/window.h"

namespace onward {

class BytePlanes {
 public:
  // None for more than two spatial axes, or if strides and dilations would make the planes
  // much larger than input and output.
  static std::optional<BytePlanes> Of(const ConvGeometry& geometry);

  // Whether the input is its own layout.
  bool as_it_is() const { return as_it_is_; }
  // Bytes of one image.
  int64_t bytes() const { return channels_ * channel_bytes_; }
  int64_t channel_bytes() const { return channel_bytes_; }
  int64_t rows_out() const { return rows_out_; }
  int64_t columns_out() const { return columns_out_; }
  // From one row of outputs to the next, and up to the last output.
  int64_t line() const { return line_; }
  int64_t positions() const { return (rows_out_ - 1) * line_ + columns_out_; }
  // Where weight k of a group's channels meets output position 0, from the group's first channel.
  const std::vector<int64_t>& offsets() const { return offsets_; }

  // Channels [begin, end) of one image.
  void Fill(const uint8_t* image, int64_t begin, int64_t end, uint8_t padding, uint8_t* to) const;

  // Calls f(position, output, n) for the runs of outputs among positions [begin, begin + n).
  template <typename F>
  void ForOutputs(int64_t begin, int64_t n, const F& f) const {
    if (line_ == columns_out_) {  // no gaps between the rows
      const int64_t last = std::min(begin + n, rows_out_ * line_);
      if (begin < last) f(begin, begin, last - begin);
      return;
    }
    for (int64_t row = begin / line_; row * line_ < begin + n && row < rows_out_; ++row) {
      const int64_t first = std::max(begin, row * line_);
      const int64_t last = std::min(begin + n, row * line_ + columns_out_);
      if (first < last) f(first, row * columns_out_ + first - row * line_, last - first);
    }
  }

 private:
  struct Axis {
    int64_t in, kernel, stride, dilation, pad, out;
    // Of each phase that some weight meets.
    int64_t length() const { return out + (kernel - 1) * dilation / stride; }
    std::vector<int64_t> phases;  // for each remainder by the stride its number, or -1
    int64_t phase_count = 0;
  };
  static Axis AxisOf(const Window& window, int axis);

  struct Run {
    int64_t first, last, from;
  };
  Run RunOf(int64_t phase) const;
  void FillLine(const uint8_t* row, const Run& run, uint8_t padding, uint8_t* line) const;

  Axis rows_, columns_;
  int64_t channels_ = 0, rows_out_ = 0, columns_out_ = 0, line_ = 0, channel_bytes_ = 0;
  bool as_it_is_ = false;
  std::vector<int64_t> offsets_;
};

}  // namespace onward

#endif  // ONWARD_CORE_OPS_QUANTIZE_BYTE_PLANES_H_
