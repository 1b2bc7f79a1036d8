// SPDX-License-Identifier: Apache-2.0
#include "training_info/gradient_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/differentiate.h"
#include "core/base/status.h"
#include "core/graph/infer.h"
#include "core/graph/name_scope.h"
#include "core/graph/rename.h"
#include "core/graph/verify.h"
#include "training_info/export.h"
#include "training_info/lower.h"

namespace onward {
namespace {

bool IsComputed(const Graph& graph, const std::vector<std::string>& values) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return std::any_of(node.outputs.begin(), node.outputs.end(), [&](const std::string& out) {
      return std::find(values.begin(), values.end(), out) != values.end();
    });
  });
}

std::vector<std::string> OutputNames(const Graph& graph) {
  std::vector<std::string> names;
  for (const NamedType& out : graph.outputs) names.push_back(out.name);
  return names;
}

absl::Status Check(const GradientRequest& request) {
  if (request.ys.empty() || request.xs.empty() || request.order < 1 ||
      request.order > kHighestGradientOrder) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a gradient needs at least one value to differentiate, one to differentiate by, and an "
        "order from 1 to ",
        kHighestGradientOrder, "; given are ", request.ys.size(), ", ", request.xs.size(), " and ",
        request.order));
  }
  if (request.hessian_vector && request.order > 1) {
    return absl::InvalidArgumentError(
        "products with the Hessian are of the second order already: ask for order 1 beside them");
  }
  for (const auto& [y, seed] : request.seeds) {
    if (std::find(request.ys.begin(), request.ys.end(), y) != request.ys.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("a seed is given for '", y, "', which is not differentiated"));
  }
  return absl::OkStatus();
}

// Adds derivatives to a graph of standard operators and ai.onward functions.
class GradientAuthor {
 public:
  GradientAuthor(Graph graph, const GradientRequest& request, const Environment& environment)
      : graph_(std::move(graph)), request_(request), environment_(environment) {
    options_.operators = &environment.operators();
    options_.rules = &environment.rules();
    options_.stop = request.stop;
  }

  absl::Status Run(GradientModel* made) {
    ONWARD_RETURN_IF_ERROR(InferTypes(&graph_, environment_.operators()));
    std::vector<SeededValue> ys;
    for (const std::string& y : request_.ys) {
      auto seed = request_.seeds.find(y);
      ys.push_back({y, seed == request_.seeds.end() ? "" : seed->second});
      if (seed != request_.seeds.end() && !IsValue(seed->second)) {
        ONWARD_RETURN_IF_ERROR(AddInput(seed->second, y));
      }
    }
    ONWARD_RETURN_IF_ERROR(AddOrders(ys, &made->gradients));
    if (request_.hessian_vector) ONWARD_RETURN_IF_ERROR(AddProducts(made));
    return absl::OkStatus();
  }

  Graph& graph() { return graph_; }

 private:
  bool IsValue(const std::string& name) const {
    return graph_.IsInput(name) || graph_.initializers.contains(name) || IsComputed(graph_, {name});
  }

  absl::Status AddInput(const std::string& name, const std::string& like) {
    const ValueType* type = graph_.TypeOf(like);
    if (type == nullptr || !type->known()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the type of '", like, "' is not known, so that of the new input '", name, "' is not"));
    }
    const ValueType copy = *type;
    graph_.inputs.push_back({name, copy});
    graph_.types[name] = copy;
    return absl::OkStatus();
  }

  absl::Status AddOrders(const std::vector<SeededValue>& ys, std::vector<std::string>* results) {
    std::vector<std::string> current;
    ONWARD_ASSIGN_OR_RETURN(current, Derive(ys, request_.xs));
    *results = current;
    for (int64_t order = 2; order <= request_.order; ++order) {
      for (size_t i = 0; i < current.size(); ++i) {
        ONWARD_ASSIGN_OR_RETURN(std::vector<std::string> next,
                                Derive({{current[i], ""}}, {request_.xs[i]}));
        current[i] = next[0];
        results->push_back(next[0]);
      }
    }
    return absl::OkStatus();
  }

  // Values in one list are held apart: where one depends on another, it takes a list for
  // each to get whole derivatives.
  absl::StatusOr<std::vector<std::string>> Derive(const std::vector<SeededValue>& ys,
                                                  const std::vector<std::string>& xs) {
    std::vector<std::vector<std::string>> lists = {xs};
    if (IsComputed(graph_, xs)) {
      lists.clear();
      for (const std::string& x : xs) lists.push_back({x});
    }
    std::vector<std::string> values;
    for (const std::vector<std::string>& list : lists) {
      ONWARD_ASSIGN_OR_RETURN(Gradients gradients, Differentiate(graph_, ys, list, options_));
      graph_ = std::move(gradients.graph);
      values.insert(values.end(), gradients.values.begin(), gradients.values.end());
    }
    return values;
  }

  // H*v is the derivative of <gradient, v>: vectors are the seeds of gradients.
  absl::Status AddProducts(GradientModel* made) {
    NameScope names(graph_);
    std::vector<SeededValue> ys;
    for (size_t i = 0; i < request_.xs.size(); ++i) {
      made->vectors.push_back(names.Unique(absl::StrCat(request_.xs[i], "__vector")));
      ONWARD_RETURN_IF_ERROR(AddInput(made->vectors.back(), request_.xs[i]));
      ys.push_back({made->gradients[i], made->vectors.back()});
    }
    ONWARD_ASSIGN_OR_RETURN(std::vector<std::string> values, Derive(ys, request_.xs));
    Renaming renamed;
    for (size_t i = 0; i < values.size(); ++i) {
      made->products.push_back(names.Unique(absl::StrCat(request_.xs[i], "__hvp")));
      renamed[values[i]] = made->products.back();
    }
    RenameEverywhere(renamed, &graph_);
    return absl::OkStatus();
  }

  Graph graph_;
  const GradientRequest& request_;
  const Environment& environment_;
  DifferentiateOptions options_;
};

}  // namespace

absl::StatusOr<GradientModel> MakeGradientModel(const Model& model, const GradientRequest& request,
                                                const Environment& environment) {
  ONWARD_RETURN_IF_ERROR(Check(request));
  ONWARD_ASSIGN_OR_RETURN(Graph graph, InferenceGraph(model));
  ONWARD_ASSIGN_OR_RETURN(graph, WritableGraph(graph, environment));
  ONWARD_ASSIGN_OR_RETURN(graph, ExpandGradients(graph, environment));
  GradientModel made;
  GradientAuthor author(std::move(graph), request, environment);
  if (absl::Status s = author.Run(&made); !s.ok()) {
    return Annotate(s, absl::StrCat("'", model.path(), "'"));
  }
  ONWARD_ASSIGN_OR_RETURN(graph, InlineOwnFunctions(author.graph(), environment));
  for (const std::vector<std::string>* names : {&made.gradients, &made.products}) {
    for (const std::string& name : *names) {
      const ValueType* type = graph.TypeOf(name);
      graph.outputs.push_back({name, type == nullptr ? ValueType{} : *type});
    }
  }
  Prune(&graph, OutputNames(graph));
  made.model = InferenceOnly(RebuildLike(model, graph, std::max(model.ir_version(), kWrittenIr)));
  return made;
}

}  // namespace onward
