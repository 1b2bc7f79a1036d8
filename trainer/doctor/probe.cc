// SPDX-License-Identifier: Apache-2.0
#include "trainer/doctor/probe.h"

#include <algorithm>
#include <cmath>

#include "autograd/differentiate.h"
#include "core/base/status.h"
#include "core/graph/builder.h"
#include "core/graph/infer.h"
#include "core/graph/verify.h"

namespace onward {
namespace {

// The largest |value| of each unit.
Expr LargestOfUnits(GraphBuilder& b, const UnitLayer& layer) {
  std::vector<int64_t> axes;
  for (int axis = 0; axis < layer.rank; ++axis) {
    if (axis != layer.axis) axes.push_back(axis);
  }
  return b.Op("ReduceMax", {Abs(b.Value(layer.value)), b.Ints(axes)}, {{"keepdims", 0}});
}

// In double: squares of large gradients leave the range of float.
Expr SumOfSquares(GraphBuilder& b, const std::string& value) {
  const Expr x = Cast(b.Value(value), DType::kDouble);
  return ReduceSumAll(x * x);
}

absl::Status AddNumbers(const TensorMap& values, ReadNumbers* read) {
  const Tensor& tensor = values.at(read->read.value);
  ONWARD_ASSIGN_OR_RETURN(const std::vector<double> numbers, ToDoubles(tensor));
  read->numbers.Add(numbers);
  if (tensor.shape().rank() == 2) {
    read->columns.resize(tensor.shape()[1]);
    AddColumns(numbers, &read->columns);
  }
  if (read->read.made.empty()) return absl::OkStatus();
  ONWARD_ASSIGN_OR_RETURN(const std::vector<double> made, ToDoubles(values.at(read->read.made)));
  read->made.Add(made);
  return absl::OkStatus();
}

}  // namespace

double WeightGradient::norm() const { return std::sqrt(squares); }

double WeightGradient::rms() const {
  return elements == 0 ? 0 : std::sqrt(squares / static_cast<double>(elements));
}

absl::StatusOr<Prober> Prober::Create(TrainingModel* model, const ProbeTargets& targets) {
  Prober prober;
  prober.model_ = model;
  prober.loss_ = targets.loss;
  prober.output_ = targets.output;
  Graph graph = model->lowered(0);
  std::vector<std::string> wanted = {targets.loss};
  if (!targets.output.empty()) wanted.push_back(targets.output);
  Prune(&graph, wanted);
  graph.outputs.clear();
  ONWARD_RETURN_IF_ERROR(InferTypes(&graph, model->environment().operators()));
  ONWARD_RETURN_IF_ERROR(prober.Watch(targets, std::move(graph)));
  return prober;
}

absl::Status Prober::Watch(const ProbeTargets& targets, Graph graph) {
  const Environment& environment = model_->environment();
  const std::set<std::string> state = model_->spec().StateVariables();
  reads_ = FirstReads(graph, targets.labels, state);
  units_ = UnitLayers(graph);
  weights_ = InForwardOrder(graph, targets.weights);
  added_ = AddedWeights(graph, targets.weights);
  unread_ = targets.weights;
  for (const std::string& weight : weights_) unread_.erase(weight);
  DifferentiateOptions options;
  options.operators = &environment.operators();
  options.rules = &environment.rules();
  std::vector<std::string> gradients;
  if (!weights_.empty()) {
    ONWARD_ASSIGN_OR_RETURN(Gradients made, Differentiate(graph, loss_, weights_, options));
    graph = std::move(made.graph);
    gradients = std::move(made.values);
  }
  GraphBuilder b(&graph, &environment.operators(), "doctor");
  for (const UnitLayer& layer : units_) largest_.push_back(LargestOfUnits(b, layer).name());
  for (const std::string& value : gradients) squares_.push_back(SumOfSquares(b, value).name());
  ONWARD_RETURN_IF_ERROR(b.status());

  std::set<std::string> wanted = {loss_};
  if (!output_.empty()) wanted.insert(output_);
  wanted.insert(largest_.begin(), largest_.end());
  wanted.insert(squares_.begin(), squares_.end());
  for (const LayerRead& read : reads_) {
    if (!graph.IsInput(read.value)) wanted.insert(read.value);
    if (!read.made.empty()) wanted.insert(read.made);
  }
  CompileOptions compile = environment.compile_options();
  compile.variables.insert(state.begin(), state.end());
  compile.outputs.emplace(wanted.begin(), wanted.end());
  compile.looked_at = model_->model().weights().PageReleaser();
  session_ = std::make_unique<Session>(std::move(graph), std::move(compile));
  return absl::OkStatus();
}

Probe Prober::Begin() const {
  Probe probe;
  for (const LayerRead& read : reads_) probe.reads.push_back({.read = read});
  for (const UnitLayer& layer : units_) probe.units.push_back({.node = layer.node});
  for (const std::string& weight : weights_) {
    const Tensor& value = model_->lowered(0).initializers.at(weight);
    probe.gradients.push_back({.weight = weight,
                               .is_matrix = value.shape().rank() >= 2 && !added_.contains(weight),
                               .elements = value.elements()});
  }
  probe.unread = unread_;
  return probe;
}

absl::Status Prober::Look(const TensorMap& feeds, Probe* probe) const {
  RunOptions run;
  run.random = model_->random();
  ONWARD_ASSIGN_OR_RETURN(TensorMap values, session_->Run(feeds, &model_->variables(), run));
  values.insert(feeds.begin(), feeds.end());
  ONWARD_ASSIGN_OR_RETURN(const std::vector<double> loss, ToDoubles(values.at(loss_)));
  probe->losses.Add(loss);
  for (ReadNumbers& read : probe->reads) ONWARD_RETURN_IF_ERROR(AddNumbers(values, &read));
  for (size_t i = 0; i < largest_.size(); ++i) {
    ONWARD_ASSIGN_OR_RETURN(const std::vector<double> largest, ToDoubles(values.at(largest_[i])));
    std::vector<double>& so_far = probe->units[i].largest;
    so_far.resize(largest.size());
    for (size_t u = 0; u < largest.size(); ++u) so_far[u] = std::max(so_far[u], largest[u]);
  }
  ++probe->batches;
  for (size_t i = 0; i < squares_.size(); ++i) {
    ONWARD_ASSIGN_OR_RETURN(const std::vector<double> squares, ToDoubles(values.at(squares_[i])));
    double& mean = probe->gradients[i].squares;
    mean += (squares.front() - mean) / static_cast<double>(probe->batches);
  }
  if (probe->batches == 1 && !output_.empty()) probe->output = values.at(output_);
  return absl::OkStatus();
}

}  // namespace onward
