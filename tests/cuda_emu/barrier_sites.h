// SPDX-License-Identifier: Apache-2.0
// The lines with a __syncthreads() that were reached, one of which a test may take away
// (control.h).
#pragma once

#include <source_location>

namespace onward::cuda_emu {

void RememberBarrier(const std::source_location& site);
// Whether a test took this barrier away, or any.
bool IsSkippedBarrier(const std::source_location& site);
bool SkipsABarrier();

}  // namespace onward::cuda_emu
