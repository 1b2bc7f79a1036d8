// SPDX-License-Identifier: Apache-2.0
// The parts of the image family; RegisterImageKernels calls them.
#ifndef ONWARD_CORE_OPS_IMAGE_IMAGE_H_
#define ONWARD_CORE_OPS_IMAGE_IMAGE_H_

#include "core/device/kernel.h"

namespace onward {

void RegisterResizeKernels(KernelTable& table);      // Resize, ResizeGrad
void RegisterBoxKernels(KernelTable& table);         // NonMaxSuppression
void RegisterFoldKernels(KernelTable& table);        // Col2Im, MaxUnpool
void RegisterGridSampleKernels(KernelTable& table);  // GridSample, GridSampleGrad
void RegisterAffineGridKernels(KernelTable& table);
void RegisterRoiKernels(KernelTable& table);      // RoiAlign, RoiAlignGrad
void RegisterRoiPoolKernels(KernelTable& table);  // MaxRoiPool, MaxRoiPoolGrad
void RegisterDecoderKernels(KernelTable& table);  // ImageDecoder
void RegisterDeformKernels(KernelTable& table);   // DeformConv, DeformColumns and its gradient

}  // namespace onward

#endif  // ONWARD_CORE_OPS_IMAGE_IMAGE_H_
