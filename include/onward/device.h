// SPDX-License-Identifier: Apache-2.0
// What models run on.
//
// Threads: any.
#ifndef ONWARD_DEVICE_H_
#define ONWARD_DEVICE_H_

#include "onward/status.h"

namespace onward::api {

// Ok where this CPU can run Onward's kernels (x86-64 with AVX2 and FMA). Everything that
// computes asks for itself and returns the same error; reading and writing models, making
// them trainable and differentiating them work without.
Status CheckCpu();

// "0.1.0": of the library that runs.
const char* Version();

}  // namespace onward::api

#endif  // ONWARD_DEVICE_H_
