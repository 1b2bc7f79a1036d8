// SPDX-License-Identifier: Apache-2.0
// A forward pass whose products are computed in a 16-bit type.
#ifndef ONWARD_TRAINING_INFO_SURGERY_PRECISION_H_
#define ONWARD_TRAINING_INFO_SURGERY_PRECISION_H_

#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/operator_set.h"
#include "core/graph/rename.h"

namespace onward {

// In which type a node computes.
enum class Precision {
  kLow,      // the 16-bit type: nearly all of the work, and kernels sum it in float
  kFollows,  // the type of what comes in: either will do, and a Cast costs more than it gives
  kFloat,    // float: sums over many elements, what grows fast, what subtracts equals
  kOwn,      // that of the file: its attributes say which, or nobody knows
};
Precision PrecisionOf(const Node& node);

// A value that is wanted, and in which type.
struct WantedValue {
  std::string name;
  DType dtype;
};

struct LoweredForward {
  std::vector<Node> nodes;          // behind those of the graph
  std::vector<std::string> values;  // what stands for the wanted ones
  int products = 0;                 // nodes of the kind kLow that compute in the 16-bit type
};
// The nodes that `wanted` needs, once more, each in its precision; what stays as it is, is read
// from the graph, which has types. `masters`: float variables that are read in the place of
// weights. An operator that is not defined for `low`, at the graph's opset, computes in float.
LoweredForward LowerPrecision(const Graph& graph, const std::vector<WantedValue>& wanted, DType low,
                              const Renaming& masters, const OperatorSet& operators);

// The first opset in which all that LowerPrecision makes of the graph's products is defined.
int OpsetForPrecision(const Graph& graph, DType low);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_SURGERY_PRECISION_H_
