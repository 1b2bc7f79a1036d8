// SPDX-License-Identifier: Apache-2.0
// Convolutions by matrix products over unfolded images, for the fake cuDNN.
#pragma once

#include <vector>

#include "tests/cuda_emu/cudnn_types.h"
#include "tests/cuda_emu/windows.h"

namespace onward::cuda_emu {

struct Convolution {
  Tensor x, y;
  cudnnFilterStruct w;
  cudnnConvolutionStruct convolution;
};

// Sizes of the products; images are unfolded into taps x positions.
struct Unfolded {
  Windows windows;
  int64_t images, groups, channels, filters;  // channels and filters of one group
  int64_t pixels, positions, taps;            // of one image; taps over all channels of a group

  explicit Unfolded(const Convolution& p) {
    const auto spatial = [](const std::vector<int>& dims) {
      return std::vector<int>(dims.begin() + 2, dims.end());
    };
    windows = {spatial(p.x.dims),  spatial(p.y.dims),     spatial(p.w.dims),
               p.convolution.pads, p.convolution.strides, p.convolution.dilations};
    images = p.x.dims[0];
    groups = p.convolution.groups;
    channels = p.w.dims[1];
    filters = p.w.dims[0] / groups;
    pixels = Count(windows.in);
    positions = Count(windows.out);
    taps = channels * Count(windows.window);
  }

  size_t bytes(const Convolution& p) const {
    return static_cast<size_t>(taps * positions * groups) * SizeOf(*ElementOf(p.x.type));
  }
};

// Tensors are dense, as their descriptors have them. Instantiated for float and double.
template <class C>
std::vector<C> Forward(const Convolution& p, const std::vector<C>& x, const std::vector<C>& w);
template <class C>
std::vector<C> BackwardData(const Convolution& p, const std::vector<C>& dy,
                            const std::vector<C>& w);
// Without a fixed order, images are added up as a seed has it, as with atomics on a GPU.
template <class C>
std::vector<C> BackwardFilter(const Convolution& p, const std::vector<C>& x,
                              const std::vector<C>& dy, bool fixed_order);

}  // namespace onward::cuda_emu
