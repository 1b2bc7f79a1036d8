// SPDX-License-Identifier: Apache-2.0
#include "training_info/author_groups.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/spec.h"
#include "core/base/status.h"

namespace onward {
namespace {

// Follows a weight through changes of shape and type to the node that computes with it.
const Node* ReaderOf(const Graph& graph, std::string value) {
  for (const Node& node : graph.nodes) {
    const auto it = std::find(node.inputs.begin(), node.inputs.end(), value);
    if (it == node.inputs.end()) continue;
    const bool passes = it == node.inputs.begin() &&
                        (node.Is("Reshape") || node.Is("Identity") || node.Is("Cast") ||
                         node.Is("Unsqueeze") || node.Is("Squeeze"));
    if (!passes) return &node;
    value = node.outputs[0];
  }
  return nullptr;
}

class Grouping {
 public:
  Grouping(const AuthorOptions& options, const OptimizerChoice& base,
           const std::optional<FileOptimizer>& file, const WeightChoice& weights,
           const Graph& graph, const std::vector<std::string>& trained)
      : options_(options),
        base_(base),
        file_(file),
        weights_(weights),
        graph_(graph),
        trained_(trained) {}

  absl::StatusOr<std::vector<WeightGroup>> Run() const {
    ONWARD_RETURN_IF_ERROR(CheckPatterns());
    std::vector<WeightGroup> groups;
    for (size_t i = 0; i < trained_.size(); ++i) {
      const int number = NumberOf(trained_[i]);
      const bool decays = Decays(trained_[i]);
      auto group = std::find_if(groups.begin(), groups.end(), [&](const WeightGroup& g) {
        return g.group == number && g.decays == decays;
      });
      if (group == groups.end()) {
        ONWARD_ASSIGN_OR_RETURN(OptimizerChoice own, OptimizerOf(number, decays));
        groups.push_back({number, decays, std::move(own), {}});
        group = groups.end() - 1;
      }
      group->members.push_back(i);
    }
    return groups;
  }

 private:
  absl::Status CheckPatterns() const {
    std::vector<std::string> patterns;
    for (const ParameterGroup& group : options_.groups) patterns.push_back(group.pattern);
    for (const std::string& pattern : options_.no_decay) {
      if (pattern != kNormPattern) patterns.push_back(pattern);
    }
    for (const std::string& pattern : patterns) {
      if (std::none_of(trained_.begin(), trained_.end(), [&](const std::string& name) {
            return weights_.Means(pattern, name, graph_);
          })) {
        return weights_.NoMatch(pattern, graph_);
      }
    }
    return absl::OkStatus();
  }

  // The first group whose pattern means the weight.
  int NumberOf(const std::string& weight) const {
    for (size_t i = 0; i < options_.groups.size(); ++i) {
      if (weights_.Means(options_.groups[i].pattern, weight, graph_)) return static_cast<int>(i);
    }
    return -1;
  }

  bool Decays(const std::string& weight) const {
    return std::none_of(options_.no_decay.begin(), options_.no_decay.end(),
                        [&](const std::string& pattern) {
                          return pattern == kNormPattern ? IsNormalizationWeight(graph_, weight)
                                                         : weights_.Means(pattern, weight, graph_);
                        });
  }

  absl::StatusOr<OptimizerChoice> OptimizerOf(int group, bool decays) const {
    OptimizerChoice choice = base_;
    if (group >= 0) {
      const ParameterGroup& g = options_.groups[group];
      auto own = Specialized(choice, g.options);
      if (!own.ok()) return Annotate(own.status(), absl::StrCat("group '", g.pattern, "'"));
      choice = *std::move(own);
    }
    if (!decays) {
      auto own = Specialized(choice, {{"weight_decay", "0"}});
      if (!own.ok()) return Annotate(own.status(), "no-decay");
      choice = *std::move(own);
    }
    if (file_.has_value()) ONWARD_RETURN_IF_ERROR(file_->CheckNumbers(choice.numbers));
    if (base_.lr() == 0 && choice.lr() != 0) {
      return absl::InvalidArgumentError(
          "a group cannot have a learning rate where the base rate is 0: give a base rate, and "
          "freeze what shall not learn");
    }
    return choice;
  }

  const AuthorOptions& options_;
  const OptimizerChoice& base_;
  const std::optional<FileOptimizer>& file_;
  const WeightChoice& weights_;
  const Graph& graph_;
  const std::vector<std::string>& trained_;
};

}  // namespace

absl::StatusOr<std::vector<WeightGroup>> GroupWeights(const AuthorOptions& options,
                                                      const OptimizerChoice& base,
                                                      const std::optional<FileOptimizer>& file,
                                                      const WeightChoice& weights,
                                                      const Graph& graph,
                                                      const std::vector<std::string>& trained) {
  return Grouping(options, base, file, weights, graph, trained).Run();
}

std::string OwnOptions(const AuthorOptions& options, const OptimizerChoice& base,
                       const WeightGroup& group) {
  std::map<std::string, std::string> own;
  if (group.group >= 0) own = options.groups[group.group].options;
  if (const auto rate = own.find("lr"); rate != own.end() && base.lr() != 0)
    rate->second = absl::StrCat(ExactText(group.optimizer.lr() / base.lr()), "x");
  if (!group.decays) own["weight_decay"] = "0";
  return absl::StrJoin(own, ",", absl::PairFormatter("="));
}

bool IsNormalizationWeight(const Graph& graph, const std::string& weight) {
  const Node* reader = ReaderOf(graph, weight);
  return reader != nullptr && absl::EndsWith(reader->op_type, "Normalization") &&
         reader->inputs[0] != weight;
}

bool UnitsLast(const Graph& graph, const std::string& weight) {
  const Node* reader = ReaderOf(graph, weight);
  return reader != nullptr &&
         (reader->Is("MatMul") || (reader->Is("Gemm") && reader->Int("transB", 0) == 0));
}

}  // namespace onward
