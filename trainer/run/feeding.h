// SPDX-License-Identifier: Apache-2.0
// Which field of a data set feeds which input of a model, and in what shape.
#ifndef ONWARD_TRAINER_RUN_FEEDING_H_
#define ONWARD_TRAINER_RUN_FEEDING_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/runtime/session.h"
#include "data/dataset.h"

namespace onward {

class Feeding {
 public:
  // Matches fields to `inputs` by name; a single unmatched field goes to a
  // single unmatched input, and the label field to `label` ("" if the model
  // takes no label) where none has its name. Examples are reshaped where the number of elements
  // agrees, and transposed between channels first and channels last where that is what the sizes
  // say.
  static absl::StatusOr<Feeding> Create(const Dataset& data, const std::vector<NamedType>& inputs,
                                        const std::string& label);

  // Feeds for one batch of the data set's tensors.
  absl::StatusOr<TensorMap> Feeds(const std::vector<Tensor>& batch) const;
  // The field that goes to an input; -1 if none does.
  int FieldOf(const std::string& input) const;
  // The input that the label field goes to; "" if it goes nowhere.
  const std::string& label_input() const { return label_input_; }

 private:
  struct Route {
    int field = 0;
    std::string input;
    DType dtype = DType::kUndefined;
    std::vector<int64_t> shape;    // of one example; -1 never occurs
    std::vector<int> permutation;  // of the example's axes; empty: none
    bool varies = false;           // batches have shapes of their own
  };
  absl::Status Match(const Dataset& data, const std::vector<NamedType>& inputs,
                     const std::string& label);

  std::string source_;  // of the data, for messages
  std::string label_input_;
  std::vector<Route> routes_;
};

}  // namespace onward

#endif  // ONWARD_TRAINER_RUN_FEEDING_H_
