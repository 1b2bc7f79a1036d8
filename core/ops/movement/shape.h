// SPDX-License-Identifier: Apache-2.0
// The parts of the shape family; RegisterShapeKernels calls them.
#ifndef ONWARD_CORE_OPS_MOVEMENT_SHAPE_H_
#define ONWARD_CORE_OPS_MOVEMENT_SHAPE_H_

#include "core/device/kernel.h"

namespace onward {

void RegisterFillKernels(KernelTable& table);       // Constant, ConstantOfShape, Range, ...
void RegisterTransposeKernels(KernelTable& table);  // Transpose, DepthToSpace, SpaceToDepth
void RegisterConcatKernels(KernelTable& table);     // Concat, Split
void RegisterSliceKernels(KernelTable& table);      // Slice, Expand, Tile
void RegisterPadKernels(KernelTable& table);        // Pad

}  // namespace onward

#endif  // ONWARD_CORE_OPS_MOVEMENT_SHAPE_H_
