// SPDX-License-Identifier: Apache-2.0
#include "cli/random_feeds.h"

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

// Random values of the declared shape: normal floats, small integers (below
// `classes` for labels).
absl::StatusOr<Tensor> RandomFeed(const NamedType& input, OpenSizes open, int64_t classes,
                                  std::mt19937_64* random) {
  if (!input.type.has_rank || input.type.dtype == DType::kUndefined) {
    return absl::InvalidArgumentError(absl::StrCat("input '", input.name, "' declares no shape"));
  }
  Shape shape;
  for (int i = 0; i < input.type.rank(); ++i) {
    const Dim& d = input.type.dims[i];
    const bool is_batch = i == 0 || d.symbol == input.type.dims[0].symbol;
    if (!d.known() && !is_batch && open.other == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", input.name, "' (", input.type.ToString(),
                       ") has an open size beside the batch; random data needs fixed ones"));
    }
    shape.push_back(d.known() ? d.value : is_batch ? open.batch : open.other);
  }
  Tensor t = Tensor::Zeros(input.type.dtype, shape);
  std::normal_distribution<double> normal;
  DispatchFloating(t.dtype(), [&]<typename T>() {
    for (int64_t i = 0; i < t.elements(); ++i) t.data<T>()[i] = FromDouble<T>(normal(*random));
  });
  DispatchIntegral(t.dtype(), [&]<typename T>() {
    const auto bound = static_cast<uint64_t>(std::max<int64_t>(1, classes));
    for (int64_t i = 0; i < t.elements(); ++i) {
      t.data<T>()[i] = FromDouble<T>(static_cast<double>((*random)() % bound));
    }
  });
  return t;
}

// Token ids must lie in the embedding's rows; anything else takes small numbers.
int64_t IntegerBound(const Graph& graph, const std::string& input) {
  for (const Node& node : graph.nodes) {
    if (node.Is("Gather") && node.inputs.size() == 2 && node.inputs[1] == input) {
      auto it = graph.initializers.find(node.inputs[0]);
      if (it != graph.initializers.end()) return it->second.shape()[0];
    }
  }
  return 2;
}

}  // namespace

absl::StatusOr<TensorMap> RandomFeeds(const std::vector<NamedType>& inputs, const Graph& graph,
                                      OpenSizes open, const std::string& label, int64_t classes) {
  std::mt19937_64 random(0);
  TensorMap feeds;
  for (const NamedType& in : inputs) {
    const int64_t bound = in.name == label ? classes : IntegerBound(graph, in.name);
    ONWARD_ASSIGN_OR_RETURN(feeds[in.name], RandomFeed(in, open, bound, &random));
  }
  return feeds;
}

}  // namespace onward
