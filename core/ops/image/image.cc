// SPDX-License-Identifier: Apache-2.0
// Resizing and sampling of pictures, regions of interest, decoding.
#include "core/ops/image/image.h"

#include "core/ops/cpu/register.h"

namespace onward {

void RegisterImageKernels(KernelTable& table) {
  RegisterResizeKernels(table);
  RegisterBoxKernels(table);
  RegisterFoldKernels(table);
  RegisterGridSampleKernels(table);
  RegisterAffineGridKernels(table);
  RegisterDeformKernels(table);
  RegisterRoiKernels(table);
  RegisterRoiPoolKernels(table);
  RegisterDecoderKernels(table);
}

}  // namespace onward
