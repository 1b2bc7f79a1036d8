// SPDX-License-Identifier: Apache-2.0
// The handles of cuBLAS and cuDNN.
#ifndef ONWARD_CORE_CUDA_LIBRARIES_H_
#define ONWARD_CORE_CUDA_LIBRARIES_H_

namespace onward::cuda {

class Libraries {};

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_LIBRARIES_H_
