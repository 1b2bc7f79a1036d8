// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and RNN take two biases that are only ever added. Frameworks that have one (Keras)
// leave zeros for the other; trained, these would double every step of the bias.
#include <algorithm>

#include "core/graph/name_scope.h"
#include "training_info/surgery/surgery.h"

namespace onward {
namespace {

bool AllZero(const char* data, size_t bytes) {
  return std::all_of(data, data + bytes, [](char c) { return c == 0; });
}

// Whether the second half of every row is zero, and the first half of some row is not.
bool IsPadded(const Tensor& t) {
  const size_t width = DTypeBits(t.dtype()) / 8;
  if (t.shape().rank() != 2 || t.shape()[1] % 2 != 0 || width == 0) return false;
  const size_t half = static_cast<size_t>(t.shape()[1]) / 2 * width;
  bool any = false;
  for (int64_t row = 0; row < t.shape()[0]; ++row) {
    const char* data = t.data<char>() + row * 2 * half;
    if (!AllZero(data + half, half)) return false;
    any = any || !AllZero(data, half);
  }
  return any;
}

Tensor FirstHalves(const Tensor& t) {
  const int64_t rows = t.shape()[0], columns = t.shape()[1] / 2;
  const size_t bytes = static_cast<size_t>(columns) * (DTypeBits(t.dtype()) / 8);
  Tensor out(t.dtype(), {rows, columns});
  for (int64_t row = 0; row < rows; ++row)
    std::copy_n(t.data<char>() + row * 2 * bytes, bytes, out.data<char>() + row * bytes);
  return out;
}

}  // namespace

std::vector<Tie> SplitPaddedBiases(Graph* graph, const std::vector<std::string>& names) {
  std::set<std::string> biases;
  for (const Node& node : graph->nodes) {
    const bool recurrent = node.Is("LSTM") || node.Is("GRU") || node.Is("RNN");
    if (recurrent && node.HasInput(3)) biases.insert(node.inputs[3]);
  }
  NameScope scope(*graph);
  std::vector<Tie> split;
  for (const std::string& name : names) {
    if (!biases.contains(name) || !IsPadded(graph->initializers.at(name))) continue;
    const Tensor whole = graph->initializers.at(name);
    const std::string half = scope.Unique(name + "__input");
    graph->initializers.insert_or_assign(half, FirstHalves(whole));
    graph->types[half] = ValueType::Of(whole.dtype(), graph->initializers.at(half).shape());
    if (auto entries = graph->metadata.extract(name); !entries.empty())
      graph->metadata[half] = std::move(entries.mapped());
    graph->initializers.erase(name);
    const std::string pads = scope.Unique(name + "__pads");
    graph->initializers.insert_or_assign(
        pads, Tensor::FromValues<int64_t>({4}, {0, 0, 0, whole.shape()[1] / 2}));
    std::erase_if(graph->inputs, [&](const NamedType& in) { return in.name == name; });
    Node pad;
    pad.op_type = "Pad";
    pad.inputs = {half, pads};
    pad.outputs = {name};
    graph->nodes.insert(graph->nodes.begin(), std::move(pad));
    split.push_back({name, half});
  }
  return split;
}

}  // namespace onward
