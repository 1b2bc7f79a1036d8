// SPDX-License-Identifier: Apache-2.0
// What is computed and differentiated, operator by operator: what `onward ops` prints,
// docs/operators.md holds and the tests ask.
#ifndef ONWARD_ENVIRONMENT_OPERATOR_TABLE_H_
#define ONWARD_ENVIRONMENT_OPERATOR_TABLE_H_

#include <string>
#include <vector>

#include "environment/environment.h"

namespace onward {

struct OperatorRow {
  std::string domain, name;
  int since = 0;                // version in the standard; 0: not of the standard
  bool differentiable = false;  // tagged so by the standard
  // Of kernels, in the order they are tried. "runtime": run by the executor itself; "body": through
  // the function that defines it; none: it does not run.
  std::vector<std::string> providers;
  std::vector<std::string> types;
  std::string gradient;      // "rule", "body", "zero", "none"
  std::string second_order;  // "yes", "body", "zero", "none"
  std::string reason;        // why there is no gradient

  std::string FullName() const;  // "ai.onnx.ml.Scaler"
};

// All operators of the standard and all others that the environment knows, by domain and
// name.
std::vector<OperatorRow> OperatorTable(const Environment& environment);

}  // namespace onward

#endif  // ONWARD_ENVIRONMENT_OPERATOR_TABLE_H_
