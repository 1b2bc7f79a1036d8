// SPDX-License-Identifier: Apache-2.0
#include "core/base/cpu_features.h"

#include "absl/strings/str_cat.h"

namespace onward {

CpuFeatures ThisCpu() {
  return {.avx2 = __builtin_cpu_supports("avx2") != 0,
          .fma = __builtin_cpu_supports("fma") != 0,
          .avx512f = __builtin_cpu_supports("avx512f") != 0,
          .avx512vnni = __builtin_cpu_supports("avx512vnni") != 0};
}

absl::Status CheckCpu(const CpuFeatures& cpu) {
  if (cpu.avx2 && cpu.fma) return absl::OkStatus();
  const char* missing = cpu.avx2 ? "FMA" : cpu.fma ? "AVX2" : "AVX2 and FMA";
  return absl::FailedPreconditionError(
      absl::StrCat("this CPU has no ", missing,
                   ", which Onward's kernels are compiled for; run it on an x86-64 CPU with AVX2 "
                   "and FMA (Intel since 2013, AMD since 2015)"));
}

}  // namespace onward
