// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/graph/name_scope.h"
#include "core/graph/rename.h"
#include "core/graph/verify.h"
#include "training_info/surgery/surgery.h"

namespace onward {
namespace {

bool IsNormalization(const Node& node) {
  return node.Is("BatchNormalization") && node.Int("training_mode", 0) == 0;
}
// Whether it takes the statistics of the batch, and keeps them.
bool Learns(const Node& node, const TrainingModes& modes) {
  return IsNormalization(node) && !modes.freeze_statistics;
}
bool IsDropout(const Node& node) { return node.Is("Dropout"); }

// Whether a body of the node drops, at any depth.
bool DropsInside(const Node& node) {
  bool drops = false;
  ForEachBody(node, [&](const std::string&, const Graph& body) {
    for (const Node& inner : body.nodes) drops |= IsDropout(inner) || DropsInside(inner);
  });
  return drops;
}

bool Drops(const Node& node) { return IsDropout(node) || DropsInside(node); }

// Makes the node, or what is inside its bodies, drop where `flag` holds.
void TrainDropout(const std::string& flag, Node* node) {
  if (IsDropout(*node)) {
    node->inputs.resize(3);
    node->inputs[2] = flag;
  }
  ChangeBodies(
      [&](const Graph& body) -> absl::StatusOr<Graph> {
        Graph changed = body;
        for (Node& inner : changed.nodes) TrainDropout(flag, &inner);
        return changed;
      },
      node)
      .IgnoreError();
}

Graph Needed(const Graph& graph, const std::vector<std::string>& outputs) {
  Graph part = graph;
  Prune(&part, outputs);
  return part;
}

}  // namespace

bool NeedsTrainingForward(const Graph& graph, const std::vector<std::string>& outputs,
                          const TrainingModes& modes) {
  const Graph part = Needed(graph, outputs);
  return std::any_of(part.nodes.begin(), part.nodes.end(),
                     [&](const Node& n) { return Learns(n, modes) || Drops(n); });
}

TrainingForward CopyForward(const Graph& graph, const std::vector<std::string>& outputs,
                            const TrainingModes& modes) {
  TrainingForward forward;
  NameScope names(graph);
  Renaming renamed;
  const auto in_training = [&](const std::string& v) {
    return names.Unique(absl::StrCat(v, "__train"));
  };
  std::string training_flag;
  for (const Node& node : Needed(graph, outputs).nodes) {
    const bool changes = Learns(node, modes) || Drops(node);
    const std::vector<std::string> reads = AllInputs(node);
    const bool reads_changed = std::any_of(
        reads.begin(), reads.end(), [&](const std::string& v) { return renamed.contains(v); });
    if (!changes && !reads_changed) continue;
    Node copy = node;
    if (!copy.name.empty()) copy.name = absl::StrCat(copy.name, "__train");
    RenameReads(renamed, &copy);
    for (std::string& v : copy.outputs) {
      if (!v.empty()) v = renamed[v] = in_training(v);
    }
    if (Learns(node, modes)) {
      copy.attributes["training_mode"] = 1;
      copy.outputs.resize(3);
      for (int i = 1; i <= 2; ++i) {
        copy.outputs[i] = names.Unique(
            absl::StrCat(copy.outputs[0], i == 1 ? "__running_mean" : "__running_var"));
        if (graph.initializers.contains(node.inputs[2 + i])) {
          forward.statistics.push_back({node.inputs[2 + i], copy.outputs[i]});
        }
      }
    } else if (Drops(node)) {
      if (training_flag.empty()) {
        training_flag = in_training("training_mode");
        Node constant;
        constant.op_type = "Constant";
        constant.outputs = {training_flag};
        constant.attributes["value"] = Tensor::Scalar<bool>(true);
        forward.nodes.push_back(std::move(constant));
      }
      TrainDropout(training_flag, &copy);
    }
    forward.nodes.push_back(std::move(copy));
  }
  for (const std::string& output : outputs) forward.outputs.push_back(Renamed(renamed, output));
  return forward;
}

}  // namespace onward
