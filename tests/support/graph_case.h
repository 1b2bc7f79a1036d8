// SPDX-License-Identifier: Apache-2.0
// A whole model whose gradients are checked, written in ONNX text.
#ifndef ONWARD_TESTS_SUPPORT_GRAPH_CASE_H_
#define ONWARD_TESTS_SUPPORT_GRAPH_CASE_H_

#include <ostream>
#include <string>

#include "core/graph/graph.h"
#include "core/runtime/execute/executor.h"

namespace onward {

// Inputs of type double are drawn from the name where they are not given.
struct GraphCase {
  std::string name;
  std::string text;
  TensorMap given = {};
  bool twice = true;        // whether second derivatives are checked, too
  double tolerance = 1e-6;  // of differences, relative to the largest value
};

inline void PrintTo(const GraphCase& c, std::ostream* out) { *out << c.name; }

// The gradients by all inputs of type double against central differences, once and twice;
// and the same gradients from a graph of standard operators alone.
void CheckGraphCase(const GraphCase& c);

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_GRAPH_CASE_H_
