// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/machine.h"

#include <dnnl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/cpu/sgemm.h"

namespace onward {
namespace {

constexpr int64_t kSize = 1024;
constexpr int64_t kSmallestBuffer = int64_t{256} << 20;
constexpr double kSecondsEach = 0.5;
constexpr int kFewestRuns = 5;

template <typename Body>
double BestSeconds(const Body& body) {
  using Clock = std::chrono::steady_clock;
  const auto seconds = [](Clock::time_point since) {
    return std::chrono::duration<double>(Clock::now() - since).count();
  };
  body();  // first touch of memory, first use of the team
  double best = 1e30;
  const auto start = Clock::now();
  for (int i = 0; i < kFewestRuns || seconds(start) < kSecondsEach; ++i) {
    const auto t = Clock::now();
    body();
    best = std::min(best, seconds(t));
  }
  return best;
}

double GemmFlops() {
  std::vector<float> a(kSize * kSize, 0.5f), b(kSize * kSize, 0.25f), c(kSize * kSize);
  const Sgemm own(kSize, kSize, kSize);
  std::vector<char> space(own.workspace_bytes() + 64);
  void* workspace = space.data() + (64 - reinterpret_cast<uintptr_t>(space.data()) % 64) % 64;
  const double own_seconds = BestSeconds([&] {
    own.Run({a.data(), kSize, 1}, {b.data(), kSize, 1}, c.data(), {}, workspace);
  });
  const double onednn_seconds = BestSeconds([&] {
    dnnl_sgemm('N', 'N', kSize, kSize, kSize, 1, a.data(), kSize, b.data(), kSize, 0, c.data(),
               kSize);
  });
  return 2.0 * kSize * kSize * kSize / std::min(own_seconds, onednn_seconds);
}

double CopyBandwidth() {
  const int64_t bytes = std::max<int64_t>(kSmallestBuffer, 4 * sysconf(_SC_LEVEL3_CACHE_SIZE));
  std::vector<char> from(bytes, 1), to(bytes);
  const double seconds = BestSeconds([&] {
    ParallelFor(bytes, 1, [&](int64_t begin, int64_t end) {
      std::memcpy(to.data() + begin, from.data() + begin, end - begin);
    });
  });
  return 2.0 * static_cast<double>(bytes) / seconds;
}

}  // namespace

Machine MeasureMachine() { return {GemmFlops(), CopyBandwidth()}; }

}  // namespace onward
