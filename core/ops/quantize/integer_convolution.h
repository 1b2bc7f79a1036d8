// SPDX-License-Identifier: Apache-2.0
// A convolution of bytes summed in 32 bits: rows of weights (signed) with panels of output
// positions (unsigned), for each image and group. What becomes of the sums is the caller's.
#ifndef ONWARD_CORE_OPS_QUANTIZE_INTEGER_CONVOLUTION_H_
#define ONWARD_CORE_OPS_QUANTIZE_INTEGER_CONVOLUTION_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/base/parallel.h"
#include "core/device/kernel.h"
#include "core/device/plan/window.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/quantize/byte_operand.h"
#include "core/ops/quantize/byte_planes.h"
#include "core/ops/quantize/depthwise.h"
#include "core/ops/quantize/integer_gemm.h"

namespace onward {

// Outputs [output, output + n) of a channel's plane are the sums from `at` on.
struct Segment {
  int64_t at, output, n;
  // So many outputs from `output` on may be written to: those beyond n get their numbers later.
  int64_t room = 0;
};

// At most so many sums come in several segments.
inline constexpr int64_t kMostPanels = 4, kMostColumns = kMostPanels * kPanelColumns;

// Receives the corrected sums of one channel: several segments of a few panels, or one of any
// length. Of each, whole panels can be read.
using ReceiveSums = std::function<void(int64_t image, int64_t channel, const int32_t* sums,
                                       absl::Span<const Segment> segments)>;

class IntegerConvolution {
 public:
  IntegerConvolution(ConvGeometry geometry, BytePlanes planes, ByteOperand x, ByteOperand w)
      : geometry_(std::move(geometry)),
        planes_(std::move(planes)),
        x_(x),
        w_(w),
        depthwise_(DepthwiseLayout::Of(geometry_)),
        gemm_(static_cast<int64_t>(planes_.offsets().size()), IntegerGemm::Side::kColumns) {
    if (depthwise_.has_value()) {
      plane_ = work_.Add(slots_ * depthwise_->group_bytes());
      return;
    }
    panel_ = work_.Add(slots_ * stretch_ * gemm_.panel_bytes());
    if (!planes_.as_it_is()) plane_ = work_.Add(planes_.bytes());
  }

  const ConvGeometry& geometry() const { return geometry_; }
  size_t workspace_bytes() const { return work_.bytes(); }

  void PackBeforehand(const Tensor& w) {
    if (depthwise_.has_value()) return;
    kept_ = std::make_shared<std::vector<uint8_t>>(row_bytes());
    kept_sums_ = std::make_shared<std::vector<int32_t>>(geometry_.out_channels);
    PackWeights(w, kept_->data(), kept_sums_->data());
  }
  void PackAtRuns() {
    if (depthwise_.has_value()) return;
    rows_ = work_.Add(row_bytes());
    row_sums_ = work_.Add(geometry_.out_channels * sizeof(int32_t));
  }

  void Run(const KernelCall& call, const Tensor& x, const Tensor& w, const Tensor* x_zero,
           const Tensor* w_zero, const ReceiveSums& receive) const;

 private:
  struct Weights {
    const uint8_t* rows;
    const int32_t* sums;
    std::vector<int32_t> zeros;   // of each row
    std::vector<int32_t> starts;  // what x's zero point takes from every sum of a row
    std::vector<uint8_t> ones;    // empty where no zero point needs the columns' sums
  };

  size_t row_bytes() const { return geometry_.out_channels * gemm_.row_bytes(); }
  void PackWeights(const Tensor& w, uint8_t* rows, int32_t* sums) const {
    for (int64_t m = 0; m < geometry_.out_channels; ++m) {
      sums[m] = gemm_.PackRow(w.data<uint8_t>() + m * gemm_.depth(), w_.flip(),
                              rows + m * gemm_.row_bytes());
    }
  }
  void RunDepthwise(const KernelCall& call, const Tensor& x, const Tensor& w, const Tensor* x_zero,
                    const Tensor* w_zero, const ReceiveSums& receive) const;
  // Panels for n positions, one after the other.
  void RunPanels(const Weights& weights, int64_t image, int64_t group, int64_t position, int64_t n,
                 const uint8_t* panels, const ReceiveSums& receive) const;

  ConvGeometry geometry_;
  BytePlanes planes_;
  ByteOperand x_, w_;
  std::optional<DepthwiseLayout> depthwise_;
  IntegerGemm gemm_;
  // Panels that are multiplied one after the other before their sums are handed on: as many as
  // stay in the first cache.
  int64_t stretch_ =
      std::clamp<int64_t>(16384 / static_cast<int64_t>(gemm_.panel_bytes() + 1), 1, kMostPanels);
  int64_t slots_ = Threads();
  WorkspacePlan work_;
  size_t panel_ = 0, plane_ = 0, rows_ = 0, row_sums_ = 0;
  std::shared_ptr<std::vector<uint8_t>> kept_;
  std::shared_ptr<std::vector<int32_t>> kept_sums_;
};

// Any geometry, one output after the other.
void RunByDefinition(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Tensor* x_zero,
                     const Tensor* w_zero, const ByteOperand& of_x, const ByteOperand& of_w,
                     const ReceiveSums& receive);

}  // namespace onward

#endif  // ONWARD_CORE_OPS_QUANTIZE_INTEGER_CONVOLUTION_H_
