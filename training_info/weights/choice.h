// SPDX-License-Identifier: Apache-2.0
// From decisions on weights and a user's patterns to the variables of a training.
#ifndef ONWARD_TRAINING_INFO_WEIGHTS_CHOICE_H_
#define ONWARD_TRAINING_INFO_WEIGHTS_CHOICE_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "training_info/weights/weights.h"

namespace onward {

// Part of the message of Choose where no weight is left.
inline constexpr char kNothingToTrain[] = "there is nothing to train";

class WeightChoice {
 public:
  // Patterns as in AuthorOptions.
  WeightChoice(std::vector<std::string> train, std::vector<std::string> freeze)
      : train_(std::move(train)), freeze_(std::move(freeze)) {}

  // Brings what trains into a form that can be bound: initializers, one for each weight of
  // the network that was exported. Whether the graph had to be changed.
  bool Prepare(const std::vector<std::string>& outputs, Graph* graph);

  // Beside adapters: these learn, and those never do, whatever patterns say. Of the rest only what
  // patterns name learns.
  void TrainOnly(std::set<std::string> learning, std::set<std::string> never) {
    learning_ = std::move(learning);
    never_ = std::move(never);
  }

  // The initializers that learn, of the prepared graph.
  absl::StatusOr<std::vector<std::string>> Choose(const std::vector<std::string>& outputs,
                                                  const Graph& graph);

  // Whether a pattern means the initializer: by its name, that of the one it was split off,
  // or that of a copy which was tied to it.
  bool Means(const std::string& pattern, const std::string& name, const Graph& graph) const;
  // Whether the file has a tensor of this name, which Prepare made a value computed from another.
  bool StoodForTensor(const std::string& value) const;
  // Says that a pattern means no weight, and which there are.
  absl::Status NoMatch(const std::string& pattern, const Graph& graph) const;

  const std::vector<WeightDecision>& decisions() const { return decisions_; }
  const std::vector<std::string>& notes() const { return notes_; }  // what was done, in sentences

 private:
  void RestoreLayers(const std::vector<std::string>& outputs, Graph* graph);
  std::set<std::string> Wanted(const std::string& pattern, const Graph& graph) const;
  std::vector<std::string> WeightNames() const;
  absl::Status NothingToTrain(const std::vector<std::string>& outputs) const;

  const std::vector<std::string> train_, freeze_;
  std::vector<WeightDecision> decisions_;
  std::set<std::string> learning_, never_;        // TrainOnly
  std::multimap<std::string, std::string> tied_;  // a weight -> copies that are computed from it
  std::vector<std::string> notes_;
};

// A sentence on what is trained and what is left, with the reasons of the first few.
std::string WeightSummary(const std::vector<WeightDecision>& decisions,
                          const std::vector<std::string>& trained);

// '*' any characters, '?' one.
bool MatchesPattern(const std::string& name, const std::string& pattern);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_WEIGHTS_CHOICE_H_
