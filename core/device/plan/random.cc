// SPDX-License-Identifier: Apache-2.0
#include "core/device/plan/random.h"

#include <bit>
#include <limits>
#include <string>
#include <variant>

#include "core/device/plan/random_bits.h"

namespace onward {

RandomStream::RandomStream(const Node& node) {
  if (auto it = node.attributes.find("seed"); it != node.attributes.end()) {
    if (const auto* i = std::get_if<int64_t>(&it->second.value)) {
      seed_ = static_cast<uint64_t>(*i);
      numpy_seed_ = *i >= 0 && *i <= std::numeric_limits<uint32_t>::max();
    } else if (const auto* f = std::get_if<float>(&it->second.value)) {
      // numpy's callers truncate, as in RandomState(int(seed)).
      numpy_seed_ = *f >= 0.0f && *f < 0x1p32f;
      seed_ = numpy_seed_ ? static_cast<uint64_t>(*f) : std::bit_cast<uint32_t>(*f);
    }
  }
  // FNV-1a.
  stream_ = 0xcbf29ce484222325u;
  const std::string& name = node.HasOutput(0) ? node.outputs[0] : node.name;
  for (unsigned char c : name) stream_ = (stream_ ^ c) * 0x100000001b3u;
}

std::optional<uint32_t> RandomStream::NumpySeed(RandomState state) const {
  if (!has_numpy_seed() || state.step != 0) return std::nullopt;
  return static_cast<uint32_t>(*seed_);
}

uint64_t RandomStream::Key(RandomState state) const {
  return RandomKey(seed_.value_or(state.seed), stream_, state.step);
}

}  // namespace onward
