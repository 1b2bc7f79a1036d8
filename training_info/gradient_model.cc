// SPDX-License-Identifier: Apache-2.0
#include "training_info/gradient_model.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/differentiate.h"
#include "core/base/status.h"
#include "core/graph/infer.h"
#include "core/graph/infer_bodies.h"
#include "core/graph/name_scope.h"
#include "core/graph/rename.h"
#include "core/graph/verify.h"
#include "training_info/combine.h"
#include "training_info/export.h"
#include "training_info/import.h"
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

bool IsValue(const Graph& graph, const std::string& name) {
  return graph.IsInput(name) || graph.initializers.contains(name) || IsComputed(graph, {name});
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

// Names of a request that the graph does not have, each with what asks for it.
std::vector<std::string> UnknownNames(const Graph& graph, const GradientRequest& request) {
  std::vector<std::string> unknown;
  const auto look = [&](const char* flag, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      if (!IsValue(graph, name)) unknown.push_back(absl::StrCat(flag, " '", name, "'"));
    }
  };
  look("--of", request.ys);
  look("--wrt", request.xs);
  look("--stop", request.stop);
  return unknown;
}

std::string FirstFew(const std::vector<std::string>& names) {
  constexpr size_t kShown = 8;
  const size_t shown = std::min(names.size(), kShown);
  return absl::StrCat(
      absl::StrJoin(names.begin(), names.begin() + static_cast<int64_t>(shown), ", "),
      names.size() > shown ? absl::StrCat(" (and ", names.size() - shown, " more)") : "");
}

absl::Status NoSuchNames(const Model& model, const Graph& graph,
                         const std::vector<std::string>& unknown,
                         const std::vector<std::string>& training_outputs) {
  std::vector<std::string> weights;
  for (const auto& [name, tensor] : graph.initializers) {
    if (IsFloating(tensor.dtype())) weights.push_back(name);
  }
  std::vector<std::string> inputs;
  for (const NamedType& in : graph.FeedInputs()) inputs.push_back(in.name);
  return absl::InvalidArgumentError(absl::StrCat(
      "'", model.path(), "' has no ", absl::StrJoin(unknown, ", "), "; its outputs are ",
      FirstFew(OutputNames(graph)), "; its inputs ", FirstFew(inputs), "; its weights ",
      FirstFew(weights),
      training_outputs.empty()
          ? ""
          : absl::StrCat("; its training graph also gives ", FirstFew(training_outputs))));
}

// What the wanted values of a combined graph need; the model's own inputs stay in any case.
Graph TrainingPart(Graph combined, const Graph& inference, const std::vector<std::string>& extra) {
  std::vector<NamedType> outputs = inference.outputs;
  for (const std::string& name : extra) {
    if (inference.IsOutput(name) || !IsComputed(combined, {name})) continue;
    const ValueType* type = combined.TypeOf(name);
    outputs.push_back({name, type == nullptr ? ValueType{} : *type});
  }
  combined.outputs = std::move(outputs);
  Prune(&combined, OutputNames(combined));
  absl::flat_hash_set<std::string> read;
  for (const Node& node : combined.nodes) {
    read.insert(node.inputs.begin(), node.inputs.end());
    for (std::string& name : CapturedByBodies(node)) read.insert(std::move(name));
  }
  std::erase_if(combined.inputs, [&](const NamedType& in) {
    return !inference.IsInput(in.name) && !read.contains(in.name);
  });
  return combined;
}

// The inference graph; where the request names what only a training graph computes, such as
// the loss, that graph up to there.
absl::StatusOr<Graph> GraphWith(const Model& model, const GradientRequest& request) {
  ONWARD_ASSIGN_OR_RETURN(Graph inference, InferenceGraph(model));
  std::vector<std::string> unknown = UnknownNames(inference, request);
  if (unknown.empty()) return inference;
  std::vector<std::string> outputs;
  if (model.has_training()) {
    ONWARD_ASSIGN_OR_RETURN(const TrainingSpec spec, ImportTraining(model, ImportMode::kBoth));
    for (size_t k = 0; k < spec.entries.size(); ++k) {
      ONWARD_ASSIGN_OR_RETURN(Graph combined, Combine(spec, static_cast<int>(k)));
      const std::vector<std::string> left = UnknownNames(combined, request);
      if (left.empty()) return TrainingPart(std::move(combined), inference, request.ys);
      if (left.size() < unknown.size()) unknown = left;
      for (const NamedType& out : spec.entries[k].algorithm.outputs) outputs.push_back(out.name);
    }
  }
  return NoSuchNames(model, inference, unknown, outputs);
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
      if (seed != request_.seeds.end() && !IsValue(graph_, seed->second)) {
        ONWARD_RETURN_IF_ERROR(AddInput(seed->second, y));
      }
    }
    ONWARD_RETURN_IF_ERROR(AddOrders(ys, &made->gradients));
    if (request_.hessian_vector) ONWARD_RETURN_IF_ERROR(AddProducts(made));
    return absl::OkStatus();
  }

  Graph& graph() { return graph_; }

 private:
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
  ONWARD_ASSIGN_OR_RETURN(Graph graph, GraphWith(model, request));
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
