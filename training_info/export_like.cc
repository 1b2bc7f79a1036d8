// SPDX-License-Identifier: Apache-2.0
// Trained weights into a copy of the file that training began with.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "training_info/adapters/files.h"
#include "training_info/export.h"
#include "training_info/export_proto.h"
#include "training_info/import.h"
#include "training_info/weights/weights.h"

namespace onward {
namespace {

absl::Status SetConstants(const Variables& variables, onnx::GraphProto* graph, Weights* held,
                          std::set<std::string>* done) {
  for (onnx::NodeProto& node : *graph->mutable_node()) {
    if (node.op_type() != "Constant" || node.output_size() != 1) continue;
    auto it = variables.find(node.output(0));
    if (it == variables.end()) continue;
    for (onnx::AttributeProto& a : *node.mutable_attribute()) {
      if (a.name() != "value") continue;
      ONWARD_RETURN_IF_ERROR(SetValues(it->second, a.mutable_t(), held));
      done->insert(node.output(0));
    }
  }
  return absl::OkStatus();
}

// Wherever the original holds them.
absl::Status SetAll(const Variables& variables, onnx::GraphProto* graph, Weights* held,
                    std::set<std::string>* done) {
  absl::Status set = SetInitializers(variables, graph, held, done);
  set.Update(SetConstants(variables, graph, held, done));
  if (set.ok()) return set;
  return absl::Status(set.code(),
                      absl::StrCat(set.message(),
                                   "; weights are put into a file with the same ones: a model that "
                                   "was changed (--head) is exported without it"));
}

// Initializers of the original that the trained model computes from its weights: transposed
// copies, padded biases.
absl::StatusOr<Variables> ComputedWeights(const Graph& trained, const std::set<std::string>& places,
                                          const Environment& environment) {
  Graph graph = trained;
  graph.inputs.clear();
  graph.outputs.clear();
  std::vector<std::string> names;
  for (const Node& node : trained.nodes) {
    for (const std::string& out : node.outputs) {
      if (!places.contains(out) || node.Is("Constant")) continue;
      graph.outputs.push_back({out, {}});
      names.push_back(out);
    }
  }
  if (names.empty()) return Variables();
  Prune(&graph, names);
  ONWARD_ASSIGN_OR_RETURN(graph, Canonicalize(graph));
  CompileOptions options = environment.compile_options();
  Session session(std::move(graph), options);
  ONWARD_ASSIGN_OR_RETURN(TensorMap values, session.Run({}, nullptr));
  Variables computed;
  for (auto& [name, tensor] : values) computed.emplace(name, tensor.Clone());
  return computed;
}

// Lets the nodes of the original that shared `source` read `copy`, where the trained model's
// do. False if one of them is not in the original.
bool GiveOwnTensor(const Graph& trained, const std::string& copy, const std::string& source,
                   onnx::GraphProto* original) {
  bool found = false;
  for (int i = 0; i < original->node_size(); ++i) {
    const onnx::NodeProto& node = original->node(i);
    if (node.op_type() != "Identity" || node.output_size() != 1 || node.output(0) != copy) continue;
    original->mutable_node()->DeleteSubrange(i, 1);
    return true;
  }
  for (const Node& reader : trained.nodes) {
    for (size_t k = 0; k < reader.inputs.size(); ++k) {
      if (reader.inputs[k] != copy) continue;
      auto same = std::find_if(original->mutable_node()->begin(), original->mutable_node()->end(),
                               [&](const onnx::NodeProto& node) {
                                 return node.output_size() > 0 &&
                                        node.output(0) == reader.outputs[0] &&
                                        static_cast<int>(k) < node.input_size() &&
                                        node.input(static_cast<int>(k)) == source;
                               });
      if (same == original->mutable_node()->end()) return false;
      same->set_input(static_cast<int>(k), copy);
      found = true;
    }
  }
  return found;
}

std::set<std::string> ConstantsOf(const Model& model) {
  std::set<std::string> names;
  for (const auto& t : model.proto().graph().initializer()) names.insert(t.name());
  for (const auto& node : model.proto().graph().node()) {
    if (node.op_type() == "Constant" && node.output_size() == 1) names.insert(node.output(0));
  }
  return names;
}

}  // namespace

absl::StatusOr<Model> ExportLike(const Model& trained, const Model& original,
                                 const Environment& environment) {
  ONWARD_ASSIGN_OR_RETURN(const TrainingSpec spec, ImportTraining(trained));
  ONWARD_ASSIGN_OR_RETURN(const MergedModel merged,
                          WithAdaptersMerged(trained, MergeMode::kFloat, environment));
  if (!merged.merged.kept.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the original has no place for adapters of quantized weights (",
                     absl::StrJoin(merged.merged.kept, ", "),
                     "): export without it, or with --merge dequantize"));
  }
  ONWARD_ASSIGN_OR_RETURN(const Graph graph, InferenceGraph(merged.model));
  const std::set<std::string> bound = spec.StateVariables(), places = ConstantsOf(original);
  Variables weights;
  for (const auto& [name, tensor] : graph.initializers) {
    // Of a plain model it is whatever the original also has.
    const bool corresponds =
        places.contains(name) || !graph.ValueMetadata(name, kCopyOfKey).empty();
    const bool wanted = bound.empty() ? corresponds : bound.contains(name);
    if (wanted || merged.merged.changed.contains(name)) weights.emplace(name, tensor);
  }
  if (weights.empty())
    return absl::InvalidArgumentError("the two models have no weights in common");
  ONWARD_ASSIGN_OR_RETURN(Variables all, ComputedWeights(graph, places, environment));
  for (const auto& [name, tensor] : weights) all.insert_or_assign(name, tensor);
  Model out = original;
  std::set<std::string> done;
  onnx::GraphProto* proto = out.proto().mutable_graph();
  Weights* held = &out.weights();
  ONWARD_RETURN_IF_ERROR(SetAll(all, proto, held, &done));
  for (const auto& [name, tensor] : weights) {
    const std::string source = graph.ValueMetadata(name, kCopyOfKey);
    if (done.contains(name) || source.empty() || !GiveOwnTensor(graph, name, source, proto))
      continue;
    TensorToProto(tensor, name, proto->add_initializer(), held);
    done.insert(name);
  }
  // A weight that the original holds only in what is computed from it is in place, too.
  for (const Node& node : graph.nodes) {
    if (!node.outputs.empty() && done.contains(node.outputs[0]))
      done.insert(node.inputs.begin(), node.inputs.end());
  }
  if (const absl::Status s = RequirePlaces(weights, done, "the original"); !s.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(s.message(),
                     "; leave --like out, and they are written with a graph that has "
                     "them"));
  }
  return out;
}

}  // namespace onward
