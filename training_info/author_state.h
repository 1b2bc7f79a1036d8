// SPDX-License-Identifier: Apache-2.0
// The variables that MakeTrainable adds to those of the model, and what a step assigns.
#ifndef ONWARD_TRAINING_INFO_AUTHOR_STATE_H_
#define ONWARD_TRAINING_INFO_AUTHOR_STATE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/graph/builder.h"
#include "training_info/spec.h"

namespace onward {

// A weight and what the optimizer updates: the weight itself, or its master copy in float.
struct TrainedWeight {
  std::string name;      // an initializer of the inference graph
  std::string variable;  // differs from `name` where there is a master
  DType dtype;           // of the variable
};

class AlgorithmState {
 public:
  // A variable that begins at `start`, under this name or one like it.
  Expr Add(GraphBuilder& b, const std::string& name, Tensor start);
  // One that begins where `weight` begins, also where that is drawn. `key` in the variable's
  // metadata names the weight, for who reads the file.
  Expr AddLike(GraphBuilder& b, const std::string& name, const std::string& weight, Tensor start,
               const char* key);
  void Bind(const std::string& variable, const std::string& value) {
    bindings_.push_back({variable, value});
  }

  const std::vector<Binding>& bindings() const { return bindings_; }
  std::vector<Binding>& bindings() { return bindings_; }
  // Without those that begin like a weight.
  const std::vector<std::pair<std::string, Tensor>>& starts() const { return starts_; }
  // Initializers, their metadata, and bindings.
  void AddTo(TrainingEntry* entry) const;
  // Once the initialization graph draws weights: what begins like one is bound to the same value.
  absl::Status InitializeLikeWeights(const OperatorSet& operators, TrainingEntry* entry) const;

 private:
  struct Like {
    std::string variable, weight;
    Tensor start;
    std::string key;
  };
  static Expr Declare(GraphBuilder& b, const std::string& name, const Tensor& start);

  std::vector<std::pair<std::string, Tensor>> starts_;
  std::vector<Like> likes_;
  std::vector<Binding> bindings_;
};

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_AUTHOR_STATE_H_
