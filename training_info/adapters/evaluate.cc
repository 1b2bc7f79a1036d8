// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "core/base/status.h"
#include "core/runtime/session.h"
#include "training_info/adapters/merge.h"
#include "training_info/lower.h"

namespace onward {
namespace {

// Rows of the identity matrix that are multiplied at a time.
constexpr int64_t kRows = 256;

}  // namespace

absl::StatusOr<Tensor> Evaluate(const Graph& graph, const Environment& environment) {
  ONWARD_ASSIGN_OR_RETURN(Graph lowered, Lower(graph, environment));
  Session session(std::move(lowered), environment.compile_options());
  ONWARD_ASSIGN_OR_RETURN(const TensorMap values, session.Run({}, nullptr));
  return values.at(graph.outputs[0].name).Clone();
}

// I W = W, exactly: every sum has one term that is not zero.
absl::StatusOr<Tensor> Unpack(const Node& node, const Site& site, const Sight& sight,
                              const Environment& environment) {
  const int64_t in = site.in(), out = site.out();
  Graph graph;
  graph.name = "unpack";
  graph.opsets = sight.ConstantGraph(node.inputs[1]).opsets;
  Node product = node;
  constexpr size_t kBias = 5;
  if (product.inputs.size() > kBias) product.inputs.resize(kBias);
  for (size_t i = 1; i < product.inputs.size(); ++i) {
    if (product.inputs[i].empty()) continue;
    Graph stored = sight.ConstantGraph(product.inputs[i]);
    graph.initializers.insert(stored.initializers.begin(), stored.initializers.end());
    for (Node& n : stored.nodes) graph.nodes.push_back(std::move(n));
  }
  product.inputs[0] = "onward_identity";
  product.outputs = {"onward_weight"};
  ValueType type = ValueType::Of(site.dtype, {1, in});
  type.dims[0] = {};
  graph.inputs = {{product.inputs[0], type}};
  graph.types[product.inputs[0]] = type;
  graph.outputs = {{product.outputs[0], {}}};
  graph.nodes.push_back(std::move(product));
  ONWARD_ASSIGN_OR_RETURN(Graph lowered, Lower(graph, environment));
  Session session(std::move(lowered), environment.compile_options());
  Tensor weight(site.dtype, {in, out});
  const size_t width = static_cast<size_t>(DTypeBits(site.dtype)) / 8;
  const Tensor one = ScalarOf(site.dtype, 1);
  for (int64_t row = 0; row < in; row += kRows) {
    const int64_t rows = std::min(kRows, in - row);
    Tensor identity = Tensor::Zeros(site.dtype, {rows, in});
    for (int64_t i = 0; i < rows; ++i) {
      std::memcpy(identity.data<char>() + static_cast<size_t>(i * in + row + i) * width, one.raw(),
                  width);
    }
    ONWARD_ASSIGN_OR_RETURN(const TensorMap values,
                            session.Run({{"onward_identity", identity}}, nullptr));
    const Tensor& part = values.at("onward_weight");
    if (part.dtype() != site.dtype || part.shape() != Shape{rows, out}) {
      return absl::InvalidArgumentError(absl::StrCat(node.Describe(), ": expected a product ",
                                                     Shape{rows, out}.ToString(), ", got ",
                                                     part.shape().ToString()));
    }
    std::memcpy(weight.data<char>() + static_cast<size_t>(row * out) * width, part.raw(),
                part.bytes());
  }
  return weight;
}

}  // namespace onward
