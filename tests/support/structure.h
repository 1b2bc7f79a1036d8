// SPDX-License-Identifier: Apache-2.0
// What a graph computes, whatever its inner values are called and in whatever order its nodes
// stand.
#ifndef ONWARD_TESTS_SUPPORT_STRUCTURE_H_
#define ONWARD_TESTS_SUPPORT_STRUCTURE_H_

#include <cstdint>
#include <map>
#include <string>

#include "core/graph/graph.h"

namespace onward {

// A digest for each output: of its operator, the attributes with their bodies, and, down to
// inputs (by name) and initializers (by value), of what that reads. The same on every machine.
std::map<std::string, uint64_t> StructureOf(const Graph& graph);

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_STRUCTURE_H_
