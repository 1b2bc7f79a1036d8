// SPDX-License-Identifier: Apache-2.0
// Arithmetic on sizes that exporters leave in a graph although all of it is known.
#ifndef ONWARD_CORE_RUNTIME_COMPILE_FOLD_SIZES_H_
#define ONWARD_CORE_RUNTIME_COMPILE_FOLD_SIZES_H_

#include <string>

#include "absl/container/flat_hash_set.h"
#include "core/device/device.h"
#include "core/graph/graph.h"
#include "core/graph/operator_set.h"

namespace onward {

// Puts Constants in the place of nodes that compute few integers from constants, so that
// patterns see them (TorchScript writes the pads of a Pad as a chain of eight nodes). Initializers
// named in `keep` are none, nor are those that may be fed. Values keep their names. Needs types.
void FoldSizes(const absl::flat_hash_set<std::string>& keep, const Device& device,
               const OperatorSet& operators, Graph* graph);

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_COMPILE_FOLD_SIZES_H_
