// SPDX-License-Identifier: Apache-2.0
#include "cli/random_feeds.h"

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/status.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

std::string PlaceOf(const NamedType& input, int axis) {
  return absl::StrCat(input.name, ".", axis);
}

// What is said of an open size; 0: nothing.
int64_t OpenSize(const NamedType& input, int axis, const OpenSizes& open) {
  const Dim& d = input.type.dims[axis];
  for (const std::string& name : {d.symbol, PlaceOf(input, axis)}) {
    if (auto it = open.named.find(name); it != open.named.end()) return it->second;
  }
  const bool is_batch = axis == 0 || (!d.symbol.empty() && d.symbol == input.type.dims[0].symbol);
  return is_batch ? open.batch : open.other;
}

// Random values of the declared shape: normal floats, small integers (below
// `classes` for labels).
absl::StatusOr<Tensor> RandomFeed(const NamedType& input, const OpenSizes& open, int64_t classes,
                                  std::mt19937_64* random) {
  ONWARD_ASSIGN_OR_RETURN(const Shape shape, FixedShape(input, open));
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

absl::StatusOr<std::map<std::string, int64_t>> ParseSizes(const std::vector<std::string>& texts) {
  std::map<std::string, int64_t> sizes;
  for (const std::string& text : texts) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
    int64_t size = 0;
    if (parts.first.empty() || !absl::SimpleAtoi(parts.second, &size) || size < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("--size ", text, ": expected NAME=N, N being a whole number from 1"));
    }
    sizes[parts.first] = size;
  }
  return sizes;
}

absl::Status CheckSizes(const std::map<std::string, int64_t>& sizes,
                        const std::vector<NamedType>& inputs) {
  std::set<std::string> open, named;
  for (const NamedType& input : inputs) {
    for (int i = 0; i < input.type.rank(); ++i) {
      const Dim& d = input.type.dims[i];
      if (d.known()) continue;
      named.insert(d.symbol.empty() ? PlaceOf(input, i) : d.symbol);
      open.insert({d.symbol, PlaceOf(input, i)});
    }
  }
  for (const auto& [name, size] : sizes) {
    if (open.contains(name)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--size ", name, ": ",
        named.empty() ? "the model leaves no size open"
                      : absl::StrCat("the sizes that are open are ", absl::StrJoin(named, ", "))));
  }
  return absl::OkStatus();
}

absl::StatusOr<Shape> FixedShape(const NamedType& input, const OpenSizes& open) {
  if (!input.type.is_tensor() || !input.type.has_rank || input.type.dtype == DType::kUndefined) {
    return absl::InvalidArgumentError(absl::StrCat("input '", input.name, "' declares no shape"));
  }
  Shape shape;
  for (int i = 0; i < input.type.rank(); ++i) {
    const Dim& d = input.type.dims[i];
    const int64_t size = d.known() ? d.value : OpenSize(input, i, open);
    if (size == 0 && !d.known()) {
      const std::string name = d.symbol.empty() ? PlaceOf(input, i) : d.symbol;
      return absl::InvalidArgumentError(absl::StrCat(
          "input '", input.name, "' (", input.type.ToString(),
          ") has an open size beside the batch; random data needs a number: --size ", name, "=N"));
    }
    shape.push_back(size);
  }
  return shape;
}

absl::StatusOr<TensorMap> RandomFeeds(const std::vector<NamedType>& inputs, const Graph& graph,
                                      const OpenSizes& open, const std::string& label,
                                      int64_t classes) {
  std::mt19937_64 random(0);
  TensorMap feeds;
  for (const NamedType& in : inputs) {
    const int64_t bound = in.name == label ? classes : IntegerBound(graph, in.name);
    ONWARD_ASSIGN_OR_RETURN(feeds[in.name], RandomFeed(in, open, bound, &random));
  }
  return feeds;
}

}  // namespace onward
