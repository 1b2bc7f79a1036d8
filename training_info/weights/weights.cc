// SPDX-License-Identifier: Apache-2.0
#include "training_info/weights/weights.h"

#include <algorithm>
#include <set>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/graph/constant.h"
#include "core/graph/verify.h"
#include "core/tensor/finite.h"
#include "training_info/surgery/flat_graph.h"

namespace onward {
namespace {

// What PyTorch's exporter (torch.export) and onnxscript's optimizer write beside values.
constexpr char kKindKey[] = "pkg.torch.export.graph_signature.InputSpec.kind";
constexpr char kFoldedKey[] = "pkg.onnxscript.optimizer.folded_from";

struct Candidate {
  Tensor value;
  bool in_constant = false;
  int readers = 0;
};

class Decider {
 public:
  Decider(const Graph& graph, const std::vector<std::string>& outputs) : graph_(graph) {
    Prune(&graph_, outputs);
  }

  std::vector<WeightDecision> Run() {
    Collect();
    const std::vector<std::string> running = RunningStatistics(graph_);
    const std::set<std::string> statistics(running.begin(), running.end());
    uses_ = UsesOfConstants(graph_);
    std::vector<WeightDecision> decisions;
    for (const auto& [name, candidate] : candidates_) {
      WeightDecision d;
      d.name = name;
      d.in_constant = candidate.in_constant;
      if (statistics.contains(name)) {
        d.is_statistic = true;
        d.reason = "running statistic of BatchNormalization";
      } else {
        Decide(candidate, &d);
      }
      decisions.push_back(std::move(d));
    }
    TakeWhatIsLeft(&decisions);
    return decisions;
  }

 private:
  void Collect() {
    for (const auto& [name, tensor] : graph_.initializers) {
      if (!IsFloating(tensor.dtype()) || tensor.elements() == 0) continue;
      candidates_[name] = {tensor, false};
      weights_in_initializers_ |= tensor.shape().rank() > 0;
    }
    for (const Node& node : graph_.nodes) {
      std::optional<Tensor> value = ConstantValue(node);
      if (value.has_value() && IsFloating(value->dtype()) && value->elements() > 0)
        candidates_[node.outputs[0]] = {*std::move(value), true};
    }
    for (const NamedType& in : graph_.inputs) computed_.insert(in.name);
    for (const Node& node : FlatNodes(graph_)) {
      computed_.insert(node.outputs.begin(), node.outputs.end());
      for (const std::string& in : node.inputs) {
        if (auto it = candidates_.find(in); it != candidates_.end()) ++it->second.readers;
      }
    }
    annotated_ = std::any_of(candidates_.begin(), candidates_.end(), [&](const auto& c) {
      return !graph_.ValueMetadata(c.first, kKindKey).empty();
    });
  }

  void Decide(const Candidate& candidate, WeightDecision* d) {
    auto use = uses_.find(d->name);
    d->reason = use == uses_.end() ? "no node computes with it" : use->second.reason;
    const Evidence evidence = use == uses_.end() ? Evidence::kNever : use->second.evidence;
    evidence_[d->name] = evidence;
    d->may_train = evidence >= Evidence::kLikely;
    d->layer_operand = use != uses_.end() && use->second.layer_operand;
    if (!AllFinite(candidate.value)) {
      d->reason = "holds numbers that are not finite";
      evidence_[d->name] = Evidence::kNever;
      return;
    }
    const std::string kind = graph_.ValueMetadata(d->name, kKindKey);
    // Where equal tensors were merged the exporter's word is about one of them only; the
    // place at a layer then tells more.
    const bool merged = (candidate.readers > 1 && IsUniform(candidate.value)) ||
                        !graph_.ValueMetadata(d->name, kCopyOfKey).empty();
    const bool by_place = merged && use != uses_.end() && use->second.layer_operand;
    if (!merged && kind == "PARAMETER") {
      d->trains = true;
      d->reason = absl::StrCat(d->reason, ", a parameter by the exporter's word");
      return;
    }
    if (!by_place && (kind == "BUFFER" || kind == "CONSTANT_TENSOR")) {
      d->reason = "a buffer by the exporter's word";
      evidence_[d->name] = Evidence::kNever;
      return;
    }
    const std::string folded = graph_.ValueMetadata(d->name, kFoldedKey);
    const bool frozen =
        absl::StrContains(folded, "running_mean'") || absl::StrContains(folded, "running_var'");
    if (frozen && !absl::StartsWith(d->reason, "weight of")) {
      d->reason = "folded from running statistics";
      evidence_[d->name] = Evidence::kNever;
      return;
    }
    d->trains = evidence == Evidence::kWeight ||
                (evidence == Evidence::kLikely && !IsLiteral(d->name, candidate));
    if (evidence == Evidence::kLikely && !d->trains)
      absl::StrAppend(&d->reason, ", but a literal of the exporter");
  }

  // A number written in the program rather than kept by the model.
  bool IsLiteral(const std::string& name, const Candidate& candidate) const {
    if (candidate.in_constant) return weights_in_initializers_;
    if (absl::StrContains(name, "Constant_")) return true;  // a Constant that a tool lifted
    if (!annotated_ || !graph_.ValueMetadata(name, kKindKey).empty()) return false;
    return !FoldedFromTensor(graph_.ValueMetadata(name, kFoldedKey));
  }
  // Whether the list "['h.weight', 'val_3']" names a tensor of the model: neither a numbered
  // intermediate value, nor one that the graph computes.
  bool FoldedFromTensor(const std::string& list) const {
    for (absl::string_view part :
         absl::StrSplit(list, absl::ByAnyChar("[]', \""), absl::SkipEmpty())) {
      if (computed_.contains(part)) continue;
      const bool numbered = absl::ConsumePrefix(&part, "val_") &&
                            std::all_of(part.begin(), part.end(), absl::ascii_isdigit);
      if (!numbered) return true;
    }
    return false;
  }

  // A model without layers, as y = x * W: then its arrays are what there is to train.
  void TakeWhatIsLeft(std::vector<WeightDecision>* decisions) const {
    if (std::any_of(decisions->begin(), decisions->end(),
                    [](const WeightDecision& d) { return d.trains; })) {
      return;
    }
    for (WeightDecision& d : *decisions) {
      if (d.is_statistic || evidence_.at(d.name) < Evidence::kIfNothingElse) continue;
      d.trains = true;
      absl::StrAppend(&d.reason, ", as nothing else trains");
    }
  }

  Graph graph_;
  std::map<std::string, Candidate> candidates_;
  absl::flat_hash_map<std::string, Use> uses_;
  absl::flat_hash_map<std::string, Evidence> evidence_;
  absl::flat_hash_set<std::string> computed_;
  bool weights_in_initializers_ = false;
  bool annotated_ = false;  // the exporter said of some values what they are
};

}  // namespace

bool IsParameter(const Graph& graph, const std::string& name) {
  return graph.ValueMetadata(name, kKindKey) == "PARAMETER";
}

std::vector<WeightDecision> DecideWeights(const Graph& graph,
                                          const std::vector<std::string>& outputs) {
  return Decider(graph, outputs).Run();
}

std::vector<std::string> RunningStatistics(const Graph& graph) {
  std::set<std::string> names, constants;
  for (const auto& [name, tensor] : graph.initializers) constants.insert(name);
  for (const Node& node : graph.nodes) {
    if (node.Is("Constant") && ConstantValue(node).has_value()) constants.insert(node.outputs[0]);
  }
  for (const Node& node : FlatNodes(graph)) {
    if (!node.Is("BatchNormalization")) continue;
    for (int i = 3; i <= 4 && node.HasInput(i); ++i) {
      if (constants.contains(node.inputs[i])) names.insert(node.inputs[i]);
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace onward
