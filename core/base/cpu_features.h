// SPDX-License-Identifier: Apache-2.0
// What this CPU must be able to do before a kernel may run on it.
#ifndef ONWARD_CORE_BASE_CPU_FEATURES_H_
#define ONWARD_CORE_BASE_CPU_FEATURES_H_

#include "absl/status/status.h"

namespace onward {

struct CpuFeatures {
  bool avx2 = false;
  bool fma = false;
  bool avx512f = false;     // makes products faster, is not needed
  bool avx512vnni = false;  // the same, for those of 8-bit integers
};

// Of the CPU this runs on, as far as the operating system lets programs use them.
CpuFeatures ThisCpu();

// Ok where kernels can run; otherwise a message that names what is missing.
absl::Status CheckCpu(const CpuFeatures& cpu);

}  // namespace onward

#endif  // ONWARD_CORE_BASE_CPU_FEATURES_H_
