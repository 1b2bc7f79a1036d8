// SPDX-License-Identifier: Apache-2.0
// The weight gradient of a convolution that reads few channels, such as the
// first layer of an image model:
//
//   dW[m][c][kh][kw] = sum over n, oh, ow of
//                      dY[n][m][oh][ow] * X[n][c][oh*s + kh*d - p][ow*s + kw*d - p]
//
// dY comes in blocks of 8 channels, so a vector holds 8 values of m; a row of
// taps (all kw of one c and kh) for one or more blocks stays in registers while
// a row of dY is walked. X is copied to a buffer with its padding, which makes
// every tap valid. Images are dealt to parts that do not depend on timing, each
// with its own sum; the parts are added in order.
#include <algorithm>
#include <cstring>
#include <memory>

#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/conv/conv.h"
#include "core/ops/conv/conv_direct_work.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/cpu/onednn.h"
#include "core/ops/cpu/vec.h"

namespace onward {
namespace {

using direct::ConvAxis;
using direct::kLane;

// With more weights per output channel than this oneDNN is ahead (benchmarks/conv_choice).
constexpr int64_t kMaxTaps = 32;
constexpr int64_t kMaxChannels = 4;
constexpr int64_t kMaxKernelWidth = 7;
constexpr int64_t kMaxPadding = 4096;  // the padded copy stays small

class SmallWeightGrad {
 public:
  explicit SmallWeightGrad(const ConvGeometry& g)
      : batch_(g.batch),
        channels_(g.in_channels),
        out_channels_(g.out_channels),
        blocks_((g.out_channels + kLane - 1) / kLane),
        parts_(std::min<int64_t>(Threads(), g.batch)) {
    const Window& w = g.window;
    w_ = ConvAxis(w, w.rank() - 1);
    if (w.rank() == 2) h_ = ConvAxis(w, 0);
    image_size_ = channels_ * h_.padded() * w_.padded();
    sum_size_ = (channels_ * h_.kernel * w_.kernel + 1) * blocks_ * kLane;
    WorkspacePlan plan;
    image_at_ = plan.Add(image_size_ * sizeof(float));
    sums_at_ = plan.Add(sum_size_ * sizeof(float));
    part_bytes_ = plan.bytes();
  }

  size_t workspace_bytes() const { return parts_ * part_bytes_; }

  // `dw` or `db` may be null.
  void Run(const float* dy, const float* x, float* dw, float* db, void* workspace) const {
    ParallelFor(parts_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) RunPart(p, dy, x, workspace);
    });
    const int64_t taps = channels_ * h_.kernel * w_.kernel, row = blocks_ * kLane;
    float* total = Sums(workspace, 0);
    for (int64_t p = 1; p < parts_; ++p) {
      const float* part = Sums(workspace, p);
      for (int64_t i = 0; i < sum_size_; ++i) total[i] += part[i];
    }
    for (int64_t m = 0; dw != nullptr && m < out_channels_; ++m) {
      for (int64_t t = 0; t < taps; ++t) dw[m * taps + t] = total[t * row + m];
    }
    if (db != nullptr) std::copy_n(total + taps * row, out_channels_, db);
  }

 private:
  // [c][kh][kw][m], then the sums of dY [m].
  float* Sums(void* workspace, int64_t part) const {
    return At<float>(workspace, part * part_bytes_ + sums_at_);
  }

  void RunPart(int64_t part, const float* dy, const float* x, void* workspace) const {
    float* image = At<float>(workspace, part * part_bytes_ + image_at_);
    float* sums = Sums(workspace, part);
    std::fill_n(image, image_size_, 0.0f);
    std::fill_n(sums, sum_size_, 0.0f);
    for (int64_t n = batch_ * part / parts_; n < batch_ * (part + 1) / parts_; ++n) {
      CopyImage(x + n * channels_ * h_.in * w_.in, image);
      const float* dy_image = dy + n * blocks_ * kLane * h_.out * w_.out;
      int64_t b = 0;
      // As many blocks together as registers allow (12 sums).
      if (w_.kernel <= 3) {
        for (; b + 4 <= blocks_; b += 4) Blocks<4>(dy_image, image, sums, b);
      }
      if (w_.kernel <= 6) {
        for (; b + 2 <= blocks_; b += 2) Blocks<2>(dy_image, image, sums, b);
      }
      for (; b < blocks_; ++b) Blocks<1>(dy_image, image, sums, b);
    }
  }

  // The part of an image that windows reach, behind its padding.
  void CopyImage(const float* x, float* image) const {
    const int64_t rows = std::min(h_.in, h_.padded() - h_.pad);
    const int64_t columns = std::min(w_.in, w_.padded() - w_.pad);
    for (int64_t c = 0; columns > 0 && c < channels_; ++c) {
      for (int64_t i = 0; i < rows; ++i) {
        std::copy_n(x + (c * h_.in + i) * w_.in, columns,
                    image + (c * h_.padded() + i + h_.pad) * w_.padded() + w_.pad);
      }
    }
  }

  template <int B>
  void Blocks(const float* dy, const float* image, float* sums, int64_t first) const {
    switch (w_.kernel) {
      case 1: return Rows<B, 1>(dy, image, sums, first);
      case 2: return Rows<B, 2>(dy, image, sums, first);
      case 3: return Rows<B, 3>(dy, image, sums, first);
      case 4: return Rows<B, 4>(dy, image, sums, first);
      case 5: return Rows<B, 5>(dy, image, sums, first);
      case 6: return Rows<B, 6>(dy, image, sums, first);
      default: return Rows<B, 7>(dy, image, sums, first);
    }
  }

  // B blocks of dY against rows of K taps.
  template <int B, int K>
  void Rows(const float* dy, const float* image, float* sums, int64_t first) const {
    const int64_t row = blocks_ * kLane, plane = h_.out * w_.out * kLane;
    sums += first * kLane;
    for (int64_t oh = 0; oh < h_.out; ++oh) {
      const float* dy_row = dy + first * plane + oh * w_.out * kLane;
      for (int64_t c = 0; c < channels_; ++c) {
        for (int64_t kh = 0; kh < h_.kernel; ++kh) {
          const int64_t ih = oh * h_.stride + kh * h_.dilation;
          const float* x_row = image + (c * h_.padded() + ih) * w_.padded();
          OneRow<B, K>(dy_row, plane, x_row, sums + (c * h_.kernel + kh) * K * row, row);
        }
      }
      float* dy_sums = sums + channels_ * h_.kernel * K * row;
      for (int b = 0; b < B; ++b) {
        Vec<float> sum = Load(dy_sums + b * kLane);
        for (int64_t ow = 0; ow < w_.out; ++ow) sum += Load(dy_row + b * plane + ow * kLane);
        Store(dy_sums + b * kLane, sum);
      }
    }
  }

  template <int B, int K>
  void OneRow(const float* dy, int64_t plane, const float* x, float* sums, int64_t row) const {
    Vec<float> acc[K][B];
    for (int k = 0; k < K; ++k) {
      for (int b = 0; b < B; ++b) acc[k][b] = Load(sums + k * row + b * kLane);
    }
    for (int64_t ow = 0; ow < w_.out; ++ow) {
      Vec<float> gradient[B];
      for (int b = 0; b < B; ++b) gradient[b] = Load(dy + b * plane + ow * kLane);
      for (int k = 0; k < K; ++k) {
        const Vec<float> value = Splat(x[ow * w_.stride + k * w_.dilation]);
        for (int b = 0; b < B; ++b) acc[k][b] += gradient[b] * value;
      }
    }
    for (int k = 0; k < K; ++k) {
      for (int b = 0; b < B; ++b) Store(sums + k * row + b * kLane, acc[k][b]);
    }
  }

  int64_t batch_, channels_, out_channels_, blocks_, parts_;
  ConvAxis h_, w_;
  int64_t image_size_ = 0, sum_size_ = 0;
  size_t image_at_ = 0, sums_at_ = 0, part_bytes_ = 0;
};

}  // namespace

absl::StatusOr<Kernel> MakeSmallConvWeightGrad(const KernelRequest& r) {
  const auto not_served = [&] {
    return NodeUnimplemented(r.node, "not a convolution of few channels");
  };
  if (!CheckFloatConv(r).ok()) return not_served();
  ONWARD_ASSIGN_OR_RETURN(const ConvGeometry g, CheckedConvGrad(r, 1, 2));
  ONWARD_RETURN_IF_ERROR(CheckOutputShape(r, 0, g.w()));
  ONWARD_RETURN_IF_ERROR(CheckOutputShape(r, 1, Shape{g.out_channels}));
  const Window& w = g.window;
  if (g.groups != 1 || g.in_channels > kMaxChannels || w.rank() > 2 ||
      w.kernel.back() > kMaxKernelWidth || g.in_channels * w.kernel_elements() > kMaxTaps) {
    return not_served();
  }
  for (int i = 0; i < w.rank(); ++i) {
    if (w.pads_begin[i] > kMaxPadding || w.reached_pad_end(i) > kMaxPadding) return not_served();
  }
  const auto grad = std::make_shared<const SmallWeightGrad>(g);
  Kernel kernel;
  kernel.infallible = true;
  kernel.workspace_bytes = grad->workspace_bytes();
  kernel.input_layouts = {LayoutOf(BlockedDesc(r.in(0), 8)), nullptr, r.inputs[2].layout};
  kernel.run = [grad](const KernelCall& call) {
    const auto output = [&](size_t i) {
      const bool wanted = i < call.outputs.size() && call.outputs[i] != nullptr;
      return wanted ? call.outputs[i]->data<float>() : nullptr;
    };
    grad->Run(call.inputs[0]->data<float>(), call.inputs[1]->data<float>(), output(0), output(1),
              call.workspace);
    return absl::OkStatus();
  };
  return kernel;
}

}  // namespace onward
