// SPDX-License-Identifier: Apache-2.0
// Windows that slide over images of any rank.
#pragma once

#include <cstdint>
#include <vector>

namespace onward::cuda_emu {

struct Windows {
  std::vector<int> in, out, window, pads, strides, dilations;  // one per spatial dimension

  // 1 + (in + 2 * pad - extent) / stride, where the window has this extent with its dilation.
  static int OutputSize(int in, int window, int pad, int stride, int dilation) {
    return 1 + (in + 2 * pad - ((window - 1) * dilation + 1)) / stride;
  }
};

// Calls f(output position, window position, input position, or -1 in the padding), window positions
// fastest. Positions count within one image.
template <class F>
void ForEachWindow(const Windows& w, F f) {
  const size_t rank = w.in.size();
  std::vector<int> at(rank, 0), tap(rank, 0);
  const auto advance = [rank](std::vector<int>& index, const std::vector<int>& sizes) {
    for (size_t d = rank; d-- > 0;) {
      if (++index[d] < sizes[d]) return true;
      index[d] = 0;
    }
    return false;
  };
  int64_t output = 0;
  do {
    int64_t position = 0;
    do {
      int64_t input = 0;
      for (size_t d = 0; d < rank && input >= 0; ++d) {
        const int x = at[d] * w.strides[d] - w.pads[d] + tap[d] * w.dilations[d];
        input = x >= 0 && x < w.in[d] ? input * w.in[d] + x : -1;
      }
      f(output, position++, input);
    } while (advance(tap, w.window));
    ++output;
  } while (advance(at, w.out));
}

}  // namespace onward::cuda_emu
