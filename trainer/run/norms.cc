// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/norms.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/base/status.h"
#include "training_info/combine.h"
#include "training_info/loss_scale.h"
#include "training_info/lower.h"

namespace onward {
namespace {

constexpr char kGradientEnding[] = "__grad";

template <typename T>
double Length(absl::Span<const T> values) {
  double sum = 0;
  for (const double v : values) sum += v * v;
  return std::sqrt(sum);
}

absl::StatusOr<double> NormOf(const Tensor& tensor) {
  if (tensor.dtype() == DType::kFloat) return Length(tensor.values<float>());
  ONWARD_ASSIGN_OR_RETURN(const std::vector<double> values, ToDoubles(tensor));
  return Length(absl::Span<const double>(values));
}

// The value that is the gradient of each variable.
std::map<std::string, std::string> GradientsOf(const TrainingEntry& entry) {
  std::map<std::string, std::string> gradients;
  std::set<std::string> values;
  for (const Node& node : entry.algorithm.nodes) {
    values.insert(node.outputs.begin(), node.outputs.end());
    if (!node.Is("Gradient", kTrainingDomain)) continue;
    const std::vector<std::string> xs = node.Strings("xs");
    for (size_t i = 0; i < std::min(xs.size(), node.outputs.size()); ++i) {
      if (!node.outputs[i].empty()) gradients.emplace(xs[i], node.outputs[i]);
    }
  }
  std::map<std::string, std::string> trained;
  for (const Binding& binding : entry.update_bindings) {
    const auto found = gradients.find(binding.variable);
    const std::string usual = absl::StrCat(binding.variable, kGradientEnding);
    if (found != gradients.end()) {
      trained.insert(*found);
    } else if (values.contains(usual)) {
      trained.emplace(binding.variable, usual);
    }
  }
  return trained;
}

}  // namespace

NormMeter::NormMeter(const TrainingModel& model) {
  for (const auto& [variable, gradient] : GradientsOf(model.spec().entries[0])) {
    layers_.push_back({variable, gradient, absl::StrCat("onward_norm_", layers_.size())});
  }
}

absl::Status NormMeter::Open(const TrainingModel& model) {
  const std::set<std::string> state = model.spec().StateVariables();
  ONWARD_ASSIGN_OR_RETURN(Graph graph, Combine(model.spec(), 0));
  graph.outputs.clear();
  CompileOptions options = model.environment().compile_options();
  options.outputs.emplace();
  for (const Layer& layer : layers_) {
    Node norm;
    norm.op_type = "ReduceL2";
    norm.inputs = {layer.gradient};
    norm.outputs = {layer.norm};
    norm.attributes["keepdims"] = int64_t{0};
    graph.nodes.push_back(std::move(norm));
    const DType dtype = model.variables().at(layer.variable).dtype();
    graph.outputs.push_back({layer.norm, ValueType::Of(dtype, {})});
    options.outputs->push_back(layer.norm);
  }
  ONWARD_ASSIGN_OR_RETURN(graph, Lower(graph, model.environment(), state));
  options.variables.insert(state.begin(), state.end());
  options.looked_at = model.model().weights().PageReleaser();
  for (const NamedType& in : graph.FeedInputs()) inputs_.push_back(in.name);
  session_ = std::make_unique<Session>(std::move(graph), std::move(options));
  return absl::OkStatus();
}

TensorMap NormMeter::Relevant(const TensorMap& feeds) const {
  TensorMap relevant;
  for (const std::string& name : inputs_) {
    if (const auto it = feeds.find(name); it != feeds.end()) relevant.insert(*it);
  }
  return relevant;
}

absl::StatusOr<const Plan*> NormMeter::Prepare(const TensorMap& feeds, const TrainingModel& model) {
  if (layers_.empty()) return nullptr;
  if (session_ == nullptr) ONWARD_RETURN_IF_ERROR(Open(model));
  std::map<std::string, FeedType> types;
  for (const auto& [name, tensor] : Relevant(feeds)) types[name] = {tensor.dtype(), tensor.shape()};
  ONWARD_ASSIGN_OR_RETURN(const Executor* const executor, session_->Prepare(types));
  return &executor->plan();
}

absl::StatusOr<std::vector<LayerNorm>> NormMeter::Measure(const TensorMap& feeds,
                                                          TrainingModel* model) {
  std::vector<LayerNorm> norms;
  if (layers_.empty()) return norms;
  if (session_ == nullptr) ONWARD_RETURN_IF_ERROR(Open(*model));
  // Draws (dropout) are those of the next step, which makes them again.
  RunOptions run;
  run.random = model->random();
  const double scale = LossScaleNow(*model);
  Variables& variables = model->variables();
  ONWARD_ASSIGN_OR_RETURN(const TensorMap values, session_->Run(Relevant(feeds), &variables, run));
  for (const Layer& layer : layers_) {
    const Tensor& weights = variables.at(layer.variable);
    LayerNorm norm{layer.variable, weights.elements()};
    ONWARD_ASSIGN_OR_RETURN(norm.weight, NormOf(weights));
    ONWARD_ASSIGN_OR_RETURN(const std::vector<double> length, ToDoubles(values.at(layer.norm)));
    if (!length.empty()) norm.gradient = length[0] / (scale > 0 ? scale : 1);
    norms.push_back(std::move(norm));
  }
  return norms;
}

}  // namespace onward
