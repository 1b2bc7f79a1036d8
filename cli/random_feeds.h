// SPDX-License-Identifier: Apache-2.0
// Inputs for runs whose numbers do not matter.
#ifndef ONWARD_CLI_RANDOM_FEEDS_H_
#define ONWARD_CLI_RANDOM_FEEDS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/runtime/session.h"

namespace onward {

struct OpenSizes {
  int64_t batch = 1;  // of the first axis
  int64_t other = 0;  // of further axes; 0: they have to be fixed
  // By the name that the model gives a size, or INPUT.AXIS; before the others.
  std::map<std::string, int64_t> named = {};
};
// From texts like "length=128".
absl::StatusOr<std::map<std::string, int64_t>> ParseSizes(const std::vector<std::string>& texts);
// An error where none of the inputs has such a size open.
absl::Status CheckSizes(const std::map<std::string, int64_t>& sizes,
                        const std::vector<NamedType>& inputs);

// What the input declares, with numbers in the place of open sizes.
absl::StatusOr<Shape> FixedShape(const NamedType& input, const OpenSizes& open);

// Values of the declared shapes, the same at every call: normal floats, and
// integers that are valid indices where `graph` uses them for a Gather from an
// initializer, or below `classes` for the input `label`.
absl::StatusOr<TensorMap> RandomFeeds(const std::vector<NamedType>& inputs, const Graph& graph,
                                      const OpenSizes& open, const std::string& label = "",
                                      int64_t classes = 2);

}  // namespace onward

#endif  // ONWARD_CLI_RANDOM_FEEDS_H_
