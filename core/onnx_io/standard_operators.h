// SPDX-License-Identifier: Apache-2.0
// The operators that the onnx library has schemas of.
#ifndef ONWARD_CORE_ONNX_IO_STANDARD_OPERATORS_H_
#define ONWARD_CORE_ONNX_IO_STANDARD_OPERATORS_H_

#include <string>
#include <vector>

namespace onward {

struct StandardOperator {
  std::string domain, name;
  int since = 1;                  // version of the schema
  bool has_body = false;          // the standard gives a function for it
  bool floating_results = false;  // some output may be, or hold, floating-point numbers
  bool differentiable = false;    // an input is tagged so
};

// Of every domain at its newest version (ai.onnx at the canonical one), without deprecated
// ones; in the order of domain and name.
std::vector<StandardOperator> StandardOperators();

}  // namespace onward

#endif  // ONWARD_CORE_ONNX_IO_STANDARD_OPERATORS_H_
