// SPDX-License-Identifier: Apache-2.0
// Products and convolutions of 16-bit floats on the host, computed in float:
//   y = Conv(x, w)  ->  y = Cast(Conv(Cast(x), Cast(w)))
// The CPU's fast kernels are for float; what else serves 16 bits is a plain one, behind them in the
// table. Sums are added in float and rounded once, as the plain kernels do it. A result that
// another product reads is rounded to 16 bits before, since that is what the graph says: neighbours
// do not hand each other floats. Values are converted anew for each call: a copy in float that
// waits from the forward pass for the backward one would take the memory that 16 bits save.
#ifndef ONWARD_CORE_RUNTIME_REWRITE_WIDEN_H_
#define ONWARD_CORE_RUNTIME_REWRITE_WIDEN_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/graph/name_scope.h"
#include "core/runtime/compile/evaluate.h"

namespace onward {

// Serves one graph.
class Widener {
 public:
  // Nodes in the place of a call on the host; none where the call is better left as it is: where
  // no kernel that takes 16 bits stands behind one that serves the same call in float. `types` is
  // told of the values between them.
  std::vector<Node> Widen(const KernelRequest& call, const EvaluateContext& context,
                          NameScope* names, absl::flat_hash_map<std::string, ValueType>* types);

 private:
  absl::flat_hash_map<std::string, std::string> constants_;  // -> in float
};

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_REWRITE_WIDEN_H_
