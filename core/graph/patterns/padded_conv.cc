// SPDX-License-Identifier: Apache-2.0
// Zeros that a Pad puts around the pictures of a convolution, as exporters of TensorFlow write
// uneven ones: the convolution has pads of its own.
#include <algorithm>
#include <numeric>
#include <utility>

#include "core/graph/patterns/pattern.h"

namespace onward {
namespace {

constexpr int64_t kMostZeros = 1 << 16;  // beside an axis

// Of each axis of a tensor of this rank, in front and then behind; nullopt where they are not
// constant, or not of zeros.
std::optional<std::vector<int64_t>> ZerosOf(const PatternGraph& graph, const Node& pad, int rank) {
  if (pad.String("mode", "constant") != "constant") return std::nullopt;
  if (pad.HasInput(2) && graph.Number(pad.inputs[2]) != 0.0) return std::nullopt;
  const auto ints = [&](int input) -> std::optional<std::vector<int64_t>> {
    const std::optional<Tensor> t = graph.Constant(pad.inputs[input]);
    if (!t.has_value()) return std::nullopt;
    absl::StatusOr<std::vector<int64_t>> values = ToInts(*t);
    if (!values.ok()) return std::nullopt;
    return *std::move(values);
  };
  const std::optional<std::vector<int64_t>> pads = ints(1);
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (pad.HasInput(3)) {
    std::optional<std::vector<int64_t>> given = ints(3);
    if (!given.has_value()) return std::nullopt;
    axes = *std::move(given);
  }
  if (!pads.has_value() || pads->size() != 2 * axes.size()) return std::nullopt;
  std::vector<int64_t> zeros(2 * rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (axis < 0 || axis >= rank) return std::nullopt;
    zeros[axis] += (*pads)[i];
    zeros[rank + axis] += (*pads)[axes.size() + i];
  }
  return zeros;
}

}  // namespace

bool MatchPaddedConv(PatternGraph* graph, const Node& node) {
  if (!node.Is("Conv") || node.inputs.size() < 2) return false;
  const std::string auto_pad = node.String("auto_pad", "NOTSET");
  if (auto_pad != "NOTSET" && auto_pad != "VALID") return false;
  const Node* pad = graph->Producer(node.inputs[0], "Pad");
  const ValueType* type = graph->TypeOf(node.inputs[0]);
  if (pad == nullptr || type == nullptr || !type->has_rank || type->rank() < 3) return false;
  const int rank = type->rank(), spatial = rank - 2;
  const std::optional<std::vector<int64_t>> zeros = ZerosOf(*graph, *pad, rank);
  if (!zeros.has_value() || graph->OnlyConsumer(node.inputs[0]) != &node) return false;
  std::vector<int64_t> pads = node.Ints("pads");
  if (auto_pad == "VALID" || pads.empty()) pads.assign(2 * spatial, 0);
  if (pads.size() != static_cast<size_t>(2 * spatial)) return false;
  for (int end = 0; end < 2; ++end) {
    const int64_t* own = zeros->data() + end * rank;
    if (own[0] != 0 || own[1] != 0) return false;
    for (int i = 0; i < spatial; ++i) {
      if (own[2 + i] < 0 || own[2 + i] > kMostZeros) return false;
      pads[end * spatial + i] += own[2 + i];
    }
  }
  Node conv = node;
  conv.inputs[0] = pad->inputs[0];
  conv.attributes.erase("auto_pad");
  conv.attributes["pads"] = std::move(pads);
  graph->Replace({pad, &node}, node, std::move(conv));
  return true;
}

}  // namespace onward
