// SPDX-License-Identifier: Apache-2.0
// Which numbers a random node draws: a function of its seed, its place in the graph and the step,
// the same on every device.
//
// A node with a `seed` attribute draws at step 0 what numpy's legacy
// RandomState(seed).random_sample draws; every other case is a counter-based generator (splitmix64)
// keyed by a hash of seed, node and step.
#ifndef ONWARD_CORE_DEVICE_PLAN_RANDOM_H_
#define ONWARD_CORE_DEVICE_PLAN_RANDOM_H_

#include <cstdint>
#include <optional>

#include "core/device/kernel.h"

namespace onward {

class RandomStream {
 public:
  // Reads the node's seed (integer or float attribute) and names its stream by its first output.
  explicit RandomStream(const Node& node);

  // What numpy's generator starts from, where this step draws from it.
  std::optional<uint32_t> NumpySeed(RandomState state) const;
  // Whether any step does.
  bool has_numpy_seed() const { return seed_.has_value() && numpy_seed_; }
  // The key of HashedBits (random_bits.h) elsewhere.
  uint64_t Key(RandomState state) const;
  // What RandomKey (random_bits.h) takes: the node's own seed, if it has one, and its stream.
  const std::optional<uint64_t>& seed() const { return seed_; }
  uint64_t stream() const { return stream_; }

 private:
  std::optional<uint64_t> seed_;
  bool numpy_seed_ = false;  // in the range numpy accepts
  uint64_t stream_ = 0;
};

}  // namespace onward

#endif  // ONWARD_CORE_DEVICE_PLAN_RANDOM_H_
