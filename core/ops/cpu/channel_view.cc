// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/channel_view.h"

#include <utility>

#include "core/ops/cpu/onednn.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

// Where every pixel stands alone, the batch takes the place of the pixels.
ChannelView Merged(ChannelView v) {
  if (v.planes || v.inner != 1) return v;
  std::swap(v.inner, v.outer);
  std::swap(v.inner_stride, v.outer_stride);
  return v;
}

ChannelView PlainView(const Shape& shape) {
  ChannelView v;
  if (shape.rank() == 1) {
    v.inner = shape[0];
    return v;
  }
  v.channels = v.stored_channels = shape[1];
  v.outer = shape[0];
  v.inner = shape.elements(2, shape.rank());
  v.outer_stride = v.channels * v.inner;
  v.block_stride = v.inner;
  if (v.inner == 1) {
    v.planes = false;
    v.block = std::max<int64_t>(v.channels, 1);
  }
  return Merged(v);
}

// Channels last, or in blocks of a multiple of eight.
std::optional<ChannelView> DnnlView(const Shape& shape, const DnnlDesc& desc) {
  const dnnl::memory::dims dims = desc.get_dims(), strides = desc.get_strides();
  const dnnl::memory::dims padded = desc.get_padded_dims();
  const int rank = shape.rank();
  if (rank < 3 || dims != DnnlDims(shape) || desc.get_submemory_offset() != 0) return std::nullopt;
  for (int i = 0; i < rank; ++i) {
    if (i != 1 && padded[i] != dims[i]) return std::nullopt;
  }
  ChannelView v;
  v.planes = false;
  v.channels = shape[1];
  v.stored_channels = padded[1];
  v.outer = shape[0];
  v.outer_stride = strides[0];
  v.inner = shape.elements(2, rank);
  v.inner_stride = strides[rank - 1];
  for (int i = rank - 2; i >= 2; --i) {
    if (strides[i] != strides[i + 1] * dims[i + 1]) return std::nullopt;
  }
  if (desc.get_inner_nblks() == 0 && strides[1] == 1) {
    v.block = v.stored_channels;
  } else if (desc.get_inner_nblks() == 1 && desc.get_inner_idxs()[0] == 1 &&
             desc.get_inner_blks()[0] % kLanes<float> == 0) {
    v.block = desc.get_inner_blks()[0];
    v.block_stride = strides[1];
  } else {
    return std::nullopt;
  }
  return Merged(v);
}

}  // namespace

std::optional<ChannelView> ChannelViewOf(const Shape& shape, const Layout& layout) {
  if (layout == nullptr) return PlainView(shape);
  const auto* dnnl = dynamic_cast<const DnnlLayout*>(layout.get());
  return dnnl == nullptr ? std::nullopt : DnnlView(shape, dnnl->desc());
}

void Moments::Merge(const Moments& b) {
  if (b.count == 0) return;
  const double total = count + b.count;
  const double share = b.count / total;
  for (int i = 0; i < kMax; ++i) {
    const double delta = b.mean[i] - mean[i];
    const double merged = mean[i] + delta * share;
    m2[i] += b.m2[i] + delta * delta * (count * share);
    dyx[i] += b.dyx[i] + (mean[i] - merged) * dy[i] + (b.mean[i] - merged) * b.dy[i];
    dy[i] += b.dy[i];
    mean[i] = merged;
  }
  count = total;
}

void ReadDoubles(const Tensor& t, double* values) {
  DispatchFloat(t.dtype(), [&]<typename T>() {
    const T* x = t.data<T>();
    for (int64_t i = 0; i < t.elements(); ++i) values[i] = x[i];
  });
}

void WriteDoubles(const double* values, Tensor& t) {
  DispatchFloat(t.dtype(), [&]<typename T>() {
    T* x = t.data<T>();
    for (int64_t i = 0; i < t.elements(); ++i) x[i] = static_cast<T>(values[i]);
  });
}

}  // namespace onward
