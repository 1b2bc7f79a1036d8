// SPDX-License-Identifier: Apache-2.0
// What the kernels of MaxPool, AveragePool and LpPool share: the planes of a
// tensor, and how threads divide them.
#ifndef ONWARD_CORE_OPS_POOL_POOL_PLANES_H_
#define ONWARD_CORE_OPS_POOL_POOL_PLANES_H_

#include <algorithm>
#include <type_traits>

#include "core/base/parallel.h"
#include "core/ops/pool/pool.h"

namespace onward {

inline constexpr double kPoolGrain = 32768;  // taps that are worth a second thread

// The planes of X and Y: one per channel, or per 8 channels of a block.
struct Planes {
  int64_t count = 0, in = 0, out = 0;  // planes; positions of one of X, of Y
  int block = 1;

  Planes(const Shape& x, const PoolPlan& plan, int channel_block)
      : in(plan.in), out(plan.out), block(channel_block) {
    count = block == 1 ? x[0] * x[1] : x[0] * ((x[1] + block - 1) / block) * (block / 8);
  }
  // Where plane i begins, for planes of `positions` positions.
  int64_t Begin(int64_t i, int64_t positions) const {
    if (block == 1) return i * positions;
    const int64_t halves = block / 8;
    return i / halves * positions * block + i % halves * 8;
  }
};

// Calls body.template operator()<C>(i) for every plane, C being how channels
// lie (pool.h). Pools stand between convolutions, so they walk backwards.
template <typename T, typename Body>
void ForPlanes(const Planes& planes, double work, const Body& body) {
  const int64_t grain = static_cast<int64_t>(kPoolGrain / std::max(work, 1.0)) + 1;
  const auto planes_of_range = [&](int64_t begin, int64_t end) {
    for (int64_t i = end - 1; i >= begin; --i) {
      if constexpr (std::is_same_v<T, float>) {
        if (planes.block == 8) {
          body.template operator()<EightChannels<8>>(i);
          continue;
        }
        if (planes.block == 16) {
          body.template operator()<EightChannels<16>>(i);
          continue;
        }
      }
      body.template operator()<OneChannel<T>>(i);
    }
  };
  ParallelFor(planes.count, grain, planes_of_range, Walk::kBackwards);
}

template <typename C, typename T>
void ZeroPlane(T* plane, int64_t positions) {
  for (int64_t p = 0; p < positions; ++p) C::Put(plane, p, C::Of(T{0}));
}

// Everything a pool kernel keeps.
struct Pool {
  Window window;
  PoolPlan plan;
  Planes planes;
};

// A pool with empty windows is computed plain: the padding of a channel block
// has to stay zero.
absl::StatusOr<Pool> MakePool(const KernelRequest& r, const Shape& x, int block);

// The block of a value that can stay as it is; 1: wanted plain.
int BlockOf(const KernelRequest& r, int input);
Layout BlockLayout(const Shape& shape, int block);

absl::StatusOr<Shape> PooledShape(const KernelRequest& r, const Shape& x);

absl::Status NoPoolKernel(const KernelRequest& r);

// MaxPoolWinners and MaxPoolWinnersGrad: see core/runtime/rewrite/fuse.h.
void RegisterMaxPoolWinnerKernels(KernelTable& table);

}  // namespace onward

#endif  // ONWARD_CORE_OPS_POOL_POOL_PLANES_H_
