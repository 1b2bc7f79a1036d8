// SPDX-License-Identifier: Apache-2.0
// Convolutions by cuDNN, with algorithms that are the same in every run and give the same bits.
#ifndef ONWARD_CORE_CUDA_CONV_DNN_H_
#define ONWARD_CORE_CUDA_CONV_DNN_H_

#include <cudnn.h>

#include <cstddef>
#include <memory>
#include <type_traits>

#include "absl/status/statusor.h"
#include "core/cuda/libraries.h"
#include "core/device/plan/window.h"

namespace onward::cuda {

enum class ConvPass { kForward, kData, kWeights };

class DnnConv {
 public:
  // Unimplemented where cuDNN has no such convolution: pads that differ on the two sides, sizes
  // beyond int.
  static absl::StatusOr<std::shared_ptr<const DnnConv>> Make(Libraries& libraries, ConvPass pass,
                                                             DType dtype, const ConvGeometry& g,
                                                             bool allow_tf32);

  size_t workspace_bytes() const { return workspace_bytes_; }

  // result = pass(first, second), or added to what result holds. The operands are (x, w) -> y,
  // (dy, w) -> dx, (x, dy) -> dw.
  absl::Status Run(cudnnHandle_t handle, const void* first, const void* second, void* result,
                   bool add, void* workspace) const;

 private:
  template <class Descriptor, cudnnStatus_t (*destroy)(Descriptor)>
  struct Destroy {
    void operator()(Descriptor d) const { destroy(d); }
  };
  template <class Descriptor, cudnnStatus_t (*destroy)(Descriptor)>
  using Owned = std::unique_ptr<std::remove_pointer_t<Descriptor>, Destroy<Descriptor, destroy>>;

  absl::Status Describe(DType dtype, const ConvGeometry& g, bool allow_tf32);
  absl::Status AskWorkspace(cudnnHandle_t handle);

  ConvPass pass_ = ConvPass::kForward;
  bool wide_ = false;  // scales are doubles
  size_t workspace_bytes_ = 0;
  Owned<cudnnTensorDescriptor_t, cudnnDestroyTensorDescriptor> x_, y_;
  Owned<cudnnFilterDescriptor_t, cudnnDestroyFilterDescriptor> w_;
  Owned<cudnnConvolutionDescriptor_t, cudnnDestroyConvolutionDescriptor> conv_;
};

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_CONV_DNN_H_
