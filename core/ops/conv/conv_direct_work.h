// SPDX-License-Identifier: Apache-2.0
// How direct convolutions cut a batch of images into work that stays in cache.
#ifndef ONWARD_CORE_OPS_CONV_CONV_DIRECT_WORK_H_
#define ONWARD_CORE_OPS_CONV_CONV_DIRECT_WORK_H_

#include <algorithm>
#include <cstdint>

#include "core/base/division.h"
#include "core/device/plan/window.h"
#include "core/ops/cpu/vec.h"

namespace onward::direct {

inline constexpr int kLane = kLanes<float>;
// Work of fewer multiplications stays on one thread.
inline constexpr int64_t kSmallWork = 1 << 18;

// The lanes of channel block b that are in use.
inline int LanesOf(int64_t channels, int64_t b) {
  return static_cast<int>(std::min<int64_t>(kLane, channels - b * kLane));
}

// An axis of a window.
struct ConvAxis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad = 0;

  ConvAxis() = default;
  ConvAxis(const Window& w, int i)
      : in(w.in[i]),
        out(w.out[i]),
        kernel(w.kernel[i]),
        stride(w.strides[i]),
        dilation(w.dilations[i]),
        pad(w.pads_begin[i]) {}

  // The padded input, as far as windows reach.
  int64_t padded() const { return Reached(out); }
  int64_t Reached(int64_t windows) const { return (windows - 1) * stride + extent(); }
  int64_t extent() const { return (kernel - 1) * dilation + 1; }
};

// The pixels of a batch, in chunks of about `kPixels`: either some whole images,
// or a piece of one.
class PixelChunks {
 public:
  static constexpr int64_t kPixels = 192;
  struct Chunk {
    int64_t image, images;  // the first, and how many
    int64_t pixel, pixels;  // of each of them
  };

  PixelChunks(int64_t batch, int64_t pixels)
      : batch_(batch),
        pixels_(pixels),
        images_(std::max<int64_t>(kPixels / pixels, 1)),
        pieces_(CeilDiv(pixels, kPixels)),
        piece_(CeilDiv(CeilDiv(pixels, pieces_), 12) * 12) {
    pieces_ = CeilDiv(pixels, piece_);
  }

  // Where work is shared, parts get whole units: images, or pieces of them.
  int64_t units() const { return batch_ * pieces_; }
  // Chunks that whole units of all parts fill well.
  int64_t chunks() const { return pieces_ == 1 ? CeilDiv(batch_, images_) : units(); }

  // Calls f(chunk) for the units [begin, end).
  template <typename F>
  void ForEach(int64_t begin, int64_t end, const F& f) const {
    while (begin < end) {
      if (pieces_ == 1) {
        const int64_t n = std::min(images_, end - begin);
        f(Chunk{begin, n, 0, pixels_});
        begin += n;
      } else {
        const int64_t first = begin % pieces_ * piece_;
        f(Chunk{begin / pieces_, 1, first, std::min(piece_, pixels_ - first)});
        ++begin;
      }
    }
  }

 private:
  int64_t batch_, pixels_, images_, pieces_, piece_;
};

}  // namespace onward::direct

#endif  // ONWARD_CORE_OPS_CONV_CONV_DIRECT_WORK_H_
