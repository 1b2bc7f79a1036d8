// SPDX-License-Identifier: Apache-2.0
// Attributes that hold many numbers, in each of the ways that ai.onnx.ml has for them.
#ifndef ONWARD_CORE_GRAPH_ATTRIBUTE_LISTS_H_
#define ONWARD_CORE_GRAPH_ATTRIBUTE_LISTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"

namespace onward {

inline constexpr std::string_view kMlDomain = "ai.onnx.ml";

// Empty where it is absent or of another kind.
std::vector<float> FloatsOf(const Node& node, const std::string& attribute);
// The numbers of `attribute` (floats, or a tensor of numbers); where it is absent, those of
// the tensor `attribute`_as_tensor.
std::vector<double> NumbersOf(const Node& node, const std::string& attribute);
// How many values the attribute lists; 0 where it is absent.
int64_t LengthOf(const Node& node, const std::string& attribute);

}  // namespace onward

#endif  // ONWARD_CORE_GRAPH_ATTRIBUTE_LISTS_H_
