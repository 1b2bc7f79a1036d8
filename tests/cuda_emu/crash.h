// SPDX-License-Identifier: Apache-2.0
// Says what a segmentation fault was about, where the emulator knows.
#pragma once

namespace onward::cuda_emu {

// For the calling thread; whoever handled the signal before has it afterwards.
void ExplainFaults();

}  // namespace onward::cuda_emu
