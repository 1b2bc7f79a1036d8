// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/graph/name_scope.h"
#include "core/graph/rename.h"
#include "core/graph/verify.h"
#include "training_info/surgery/surgery.h"

namespace onward {
namespace {

bool IsDropout(const Node& node) { return node.Is("Dropout"); }
bool IsNormalization(const Node& node) {
  return node.Is("BatchNormalization") && node.Int("training_mode", 0) == 0;
}

// Whether `is` holds for the node or one inside its bodies, at any depth.
template <typename Is>
bool Holds(const Node& node, const Is& is) {
  if (is(node)) return true;
  bool inside = false;
  ForEachBody(node, [&](const std::string&, const Graph& body) {
    inside = inside || absl::c_any_of(body.nodes, [&](const Node& n) { return Holds(n, is); });
  });
  return inside;
}

bool Drops(const Node& node) { return Holds(node, IsDropout); }

// Whether it takes the statistics of the batch. Inside a body it has to hand what it learns on:
// only initializers of the root can be written back, and SequenceMap carries nothing from one
// element to the next.
bool Learns(const Node& node, const Graph& root, const TrainingModes& modes, bool inside = false) {
  if (modes.freeze_statistics || node.Is("SequenceMap")) return false;
  if (IsNormalization(node)) {
    return !inside || (root.initializers.contains(node.inputs[3]) &&
                       root.initializers.contains(node.inputs[4]));
  }
  bool learns = false;
  ForEachBody(node, [&](const std::string&, const Graph& body) {
    learns = learns || absl::c_any_of(body.nodes, [&](const Node& n) {
               return Learns(n, root, modes, /*inside=*/true);
             });
  });
  return learns;
}

Graph Needed(const Graph& graph, const std::vector<std::string>& outputs) {
  Graph part = graph;
  Prune(&part, outputs);
  return part;
}

// Makes nodes train. Running statistics are initializers of the root: a body gives what became of
// them as further outputs, a repeated one takes them as further states.
class Trainer {
 public:
  // In the order in which they are first met: the statistic, and the value that it has become.
  using Latest = std::vector<std::pair<std::string, std::string>>;

  Trainer(const Graph& root, const TrainingModes& modes)
      : root_(root), modes_(modes), names_(root) {}

  std::string Unique(const std::string& base) { return names_.Unique(base); }
  // A node of the root.
  bool Changes(const Node& node) const { return Learns(node, root_, modes_) || Drops(node); }

  // `node` is a copy of one that changes, its outputs named.
  void Train(Node* node, Latest* latest) {
    if (IsDropout(*node)) {
      node->inputs.resize(3);
      node->inputs[2] = Flag();
    } else if (IsNormalization(*node)) {
      Normalize(node, latest);
    } else if (!LearnsInside(*node)) {
      const TrainingModes around = std::exchange(modes_, {.freeze_statistics = true});
      ForBodies(node, [&](Graph* body) { TrainBody(body, latest); });
      modes_ = around;
    } else if (node->Is("If")) {
      TrainBranches(node, latest);
    } else {
      TrainRepeated(node, latest);
    }
  }

  // The constant that tells every Dropout to drop: once, as soon as one has asked for it.
  std::optional<Node> TakeFlag() {
    if (flag_.empty() || std::exchange(flag_taken_, true)) return std::nullopt;
    Node constant;
    constant.op_type = "Constant";
    constant.outputs = {flag_};
    constant.attributes["value"] = Tensor::Scalar<bool>(true);
    return constant;
  }

 private:
  const std::string& Flag() {
    if (flag_.empty()) flag_ = Unique("training_mode__train");
    return flag_;
  }

  bool LearnsInside(const Node& node) const { return Learns(node, root_, modes_, /*inside=*/true); }

  static std::string Now(const Latest& latest, const std::string& statistic) {
    const auto it = absl::c_find_if(latest, [&](const auto& e) { return e.first == statistic; });
    return it == latest.end() ? statistic : it->second;
  }
  static void Set(const std::string& statistic, std::string value, Latest* latest) {
    const auto it = absl::c_find_if(*latest, [&](const auto& e) { return e.first == statistic; });
    if (it != latest->end()) {
      it->second = std::move(value);
    } else {
      latest->emplace_back(statistic, std::move(value));
    }
  }

  void Normalize(Node* node, Latest* latest) {
    node->attributes["training_mode"] = 1;
    node->outputs.resize(3);
    const Latest before = *latest;
    for (int i = 1; i <= 2; ++i) {
      const std::string statistic = node->inputs[2 + i];
      node->inputs[2 + i] = Now(before, statistic);
      node->outputs[i] =
          Unique(absl::StrCat(node->outputs[0], i == 1 ? "__running_mean" : "__running_var"));
      if (root_.initializers.contains(statistic)) Set(statistic, node->outputs[i], latest);
    }
  }

  // The statistics that the bodies of a node learn, in the order in which they do.
  std::vector<std::string> Learned(const Node& node) const {
    std::vector<std::string> learned;
    const auto add = [&](const std::string& name) {
      if (!absl::c_linear_search(learned, name)) learned.push_back(name);
    };
    ForEachBody(node, [&](const std::string&, const Graph& body) {
      for (const Node& inner : body.nodes) {
        if (!LearnsInside(inner)) continue;
        if (IsNormalization(inner)) {
          add(inner.inputs[3]);
          add(inner.inputs[4]);
        }
        for (const std::string& name : Learned(inner)) add(name);
      }
    });
    return learned;
  }

  ValueType TypeOf(const std::string& statistic) const {
    const Tensor& tensor = root_.initializers.at(statistic);
    return ValueType::Of(tensor.dtype(), tensor.shape());
  }

  static void ForBodies(Node* node, absl::FunctionRef<void(Graph* body)> change) {
    ChangeBodies(
        [&](const Graph& body) -> absl::StatusOr<Graph> {
          Graph changed = body;
          change(&changed);
          return changed;
        },
        node)
        .IgnoreError();
  }

  void TrainBody(Graph* body, Latest* latest) {
    for (Node& inner : body->nodes) {
      if (LearnsInside(inner) || Drops(inner)) Train(&inner, latest);
    }
  }

  // Outputs that nobody wants so far get names: new ones stand among and behind them.
  void NameOutputs(size_t count, Node* node) {
    node->outputs.resize(std::max(count, node->outputs.size()));
    for (std::string& out : node->outputs) {
      if (out.empty()) out = Unique("unread__train");
    }
  }

  // Both branches give every statistic that one of them learns.
  void TrainBranches(Node* node, Latest* latest) {
    const std::vector<std::string> learned = Learned(*node);
    size_t outputs = 0;
    ForBodies(node, [&](Graph* branch) {
      outputs = branch->outputs.size();
      Latest inside = *latest;
      TrainBody(branch, &inside);
      for (const std::string& statistic : learned) {
        std::string value = Now(inside, statistic);
        if (value == Now(*latest, statistic)) {
          Node same;
          same.op_type = "Identity";
          same.inputs = {value};
          same.outputs = {value = Unique(absl::StrCat(statistic, "__same"))};
          branch->nodes.push_back(std::move(same));
        }
        branch->outputs.push_back({std::move(value), TypeOf(statistic)});
      }
    });
    NameOutputs(outputs, node);
    for (const std::string& statistic : learned) {
      node->outputs.push_back(Unique(absl::StrCat(statistic, "__train")));
      Set(statistic, node->outputs.back(), latest);
    }
  }

  // Loop and Scan: the statistics are states behind the others.
  void TrainRepeated(Node* node, Latest* latest) {
    const std::vector<std::string> learned = Learned(*node);
    const bool loop = node->Is("Loop");
    const size_t first_in = loop ? 2 : 0, first_out = loop ? 1 : 0;
    node->inputs.resize(std::max(node->inputs.size(), first_in));
    const size_t scanned = loop ? 0 : std::max<int64_t>(node->Int("num_scan_inputs", 0), 0);
    const size_t states = node->inputs.size() - std::min(first_in + scanned, node->inputs.size());
    NameOutputs(states, node);
    ForBodies(node, [&](Graph* body) {
      std::erase_if(body->inputs,
                    [&](const NamedType& in) { return body->initializers.contains(in.name); });
      // What is wrong with such a body is found where the graph is checked.
      body->inputs.resize(std::max(body->inputs.size(), first_in + states));
      body->outputs.resize(std::max(body->outputs.size(), first_out + states));
      Latest inside = *latest;
      size_t at = states;
      for (const std::string& statistic : learned) {
        const std::string in = Unique(absl::StrCat(statistic, "__before"));
        Set(statistic, in, &inside);
        body->inputs.insert(body->inputs.begin() + first_in + at++, {in, TypeOf(statistic)});
      }
      TrainBody(body, &inside);
      at = states;
      for (const std::string& statistic : learned) {
        body->outputs.insert(body->outputs.begin() + first_out + at++,
                             {Now(inside, statistic), TypeOf(statistic)});
      }
    });
    size_t at = states;
    for (const std::string& statistic : learned) {
      node->inputs.insert(node->inputs.begin() + first_in + at, Now(*latest, statistic));
      node->outputs.insert(node->outputs.begin() + at, Unique(absl::StrCat(statistic, "__train")));
      Set(statistic, node->outputs[at++], latest);
    }
  }

  const Graph& root_;
  TrainingModes modes_;
  NameScope names_;
  std::string flag_;
  bool flag_taken_ = false;
};

}  // namespace

bool NeedsTrainingForward(const Graph& graph, const std::vector<std::string>& outputs,
                          const TrainingModes& modes) {
  const Graph part = Needed(graph, outputs);
  return std::any_of(part.nodes.begin(), part.nodes.end(),
                     [&](const Node& n) { return Learns(n, graph, modes) || Drops(n); });
}

TrainingForward CopyForward(const Graph& graph, const std::vector<std::string>& outputs,
                            const TrainingModes& modes) {
  TrainingForward forward;
  Trainer trainer(graph, modes);
  Trainer::Latest statistics;
  Renaming renamed;
  for (const Node& node : Needed(graph, outputs).nodes) {
    const bool changes = trainer.Changes(node);
    const std::vector<std::string> reads = AllInputs(node);
    const bool reads_changed = std::any_of(
        reads.begin(), reads.end(), [&](const std::string& v) { return renamed.contains(v); });
    if (!changes && !reads_changed) continue;
    Node copy = node;
    if (!copy.name.empty()) copy.name = absl::StrCat(copy.name, "__train");
    RenameReads(renamed, &copy);
    for (std::string& v : copy.outputs) {
      if (!v.empty()) v = renamed[v] = trainer.Unique(absl::StrCat(v, "__train"));
    }
    if (changes) trainer.Train(&copy, &statistics);
    if (std::optional<Node> flag = trainer.TakeFlag()) forward.nodes.push_back(*std::move(flag));
    forward.nodes.push_back(std::move(copy));
  }
  for (auto& [statistic, value] : statistics) forward.statistics.push_back({statistic, value});
  for (const std::string& output : outputs) forward.outputs.push_back(Renamed(renamed, output));
  return forward;
}

}  // namespace onward
