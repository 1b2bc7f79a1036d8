// SPDX-License-Identifier: Apache-2.0
// The parts of the signal family; RegisterSignalKernels calls them.
#ifndef ONWARD_CORE_OPS_SIGNAL_SIGNAL_H_
#define ONWARD_CORE_OPS_SIGNAL_SIGNAL_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/ops/movement/movement.h"

namespace onward {

// A length or step that an input gives: 1 up to the longest transform.
absl::StatusOr<int64_t> LengthOf(const Node& node, const Tensor& t, std::string_view what);

void RegisterDftKernels(KernelTable& table);
void RegisterStftKernels(KernelTable& table);
void RegisterMelKernels(KernelTable& table);

}  // namespace onward

#endif  // ONWARD_CORE_OPS_SIGNAL_SIGNAL_H_
