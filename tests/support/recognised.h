// SPDX-License-Identifier: Apache-2.0
// What tests of operator recognition have in common.
#ifndef ONWARD_TESTS_SUPPORT_RECOGNISED_H_
#define ONWARD_TESTS_SUPPORT_RECOGNISED_H_

#include <optional>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace onward {

// The graph of a model in text, its values typed.
Graph TypedGraph(const std::string& text);

// The operators of a graph in order, but for constants.
std::vector<std::string> OperatorsOf(const Graph& graph);

// The graph after recognition, which has to find one operator and leave those in
// `left`, all of them typed; nullopt where `left` is empty: then nothing may change.
std::optional<Graph> Recognised(const Graph& before, const std::vector<std::string>& keep,
                                const std::vector<std::string>& left);

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_RECOGNISED_H_
