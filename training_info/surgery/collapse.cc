// SPDX-License-Identifier: Apache-2.0
// A token that a model repeats for every example of a batch (a class token, learned queries) is
// one row in the model. Exporters that fold the repetition leave a row for each example, and
// trained they would part.
#include <cstring>

#include "core/graph/name_scope.h"
#include "training_info/surgery/surgery.h"

namespace onward {
namespace {

// The tensor with one element along the axis: the first.
Tensor First(const Tensor& t, int axis) {
  Shape shape = t.shape();
  const int64_t outer = shape.elements(0, axis);
  shape[axis] = 1;
  Tensor first(t.dtype(), shape);
  if (outer == 0) return first;
  const size_t part = first.bytes() / static_cast<size_t>(outer);
  for (int64_t o = 0; o < outer; ++o) {
    std::memcpy(first.data<char>() + o * part, t.data<char>() + o * part * t.shape()[axis], part);
  }
  return first;
}

bool RepeatsAlong(const Tensor& t, int axis) {
  const Tensor first = First(t, axis);
  const int64_t outer = t.shape().elements(0, axis), times = t.shape()[axis];
  const size_t part = first.bytes() / static_cast<size_t>(outer);
  for (int64_t i = 0; i < outer * times; ++i) {
    if (std::memcmp(t.data<char>() + i * part, first.data<char>() + i / times * part, part) != 0)
      return false;
  }
  return true;
}

// The axis along which a constant repeats itself for each example; -1 if there is none.
int RepeatedAxis(const Tensor& t, int64_t batch) {
  if (t.shape().rank() < 3 || t.elements() == batch || DTypeBits(t.dtype()) < 8) return -1;
  for (int axis = 0; axis < t.shape().rank(); ++axis) {
    if (t.shape()[axis] == batch && RepeatsAlong(t, axis)) return axis;
  }
  return -1;
}

}  // namespace

std::vector<Tie> CollapseRepeatedRows(Graph* graph, const std::vector<std::string>& names) {
  const int64_t batch = FixedBatch(*graph);
  std::vector<Tie> collapsed;
  if (batch < 2) return collapsed;
  NameScope scope(*graph);
  for (const std::string& name : names) {
    const Tensor whole = graph->initializers.at(name);
    const int axis = RepeatedAxis(whole, batch);
    if (axis < 0) continue;
    const std::string row = scope.Unique(name + "__row"), sizes = scope.Unique(name + "__sizes");
    graph->initializers.insert_or_assign(row, First(whole, axis));
    graph->types[row] = ValueType::Of(whole.dtype(), graph->initializers.at(row).shape());
    if (auto entries = graph->metadata.extract(name); !entries.empty())
      graph->metadata[row] = std::move(entries.mapped());
    graph->initializers.insert_or_assign(
        sizes, Tensor::FromValues<int64_t>({whole.shape().rank()}, whole.shape().dims()));
    graph->initializers.erase(name);
    std::erase_if(graph->inputs, [&](const NamedType& in) { return in.name == name; });
    Node expand;
    expand.op_type = "Expand";
    expand.inputs = {row, sizes};
    expand.outputs = {name};
    graph->nodes.insert(graph->nodes.begin(), std::move(expand));
    collapsed.push_back({name, row});
  }
  return collapsed;
}

}  // namespace onward
