// SPDX-License-Identifier: Apache-2.0
// What the classes of a model are called. Data sets number their classes by themselves;
// a model's file keeps the names, and every data set that meets it is numbered as the
// model is.
#ifndef ONWARD_TRAINER_RUN_CLASS_LABELS_H_
#define ONWARD_TRAINER_RUN_CLASS_LABELS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/onnx_io/model.h"
#include "data/dataset.h"
#include "trainer/report/numbers/metrics.h"

namespace onward {

// The names that the file keeps, in the order of the model's outputs; none where it says
// nothing, because it was never trained on names or classes are numbers.
absl::StatusOr<std::vector<std::string>> StoredClasses(const Model& model);
// An empty list removes them.
void StoreClasses(const std::vector<std::string>& names, Model* model);

// How many classes a model's output tells apart; 0 where its type does not say.
int64_t OutputClasses(const ValueType* output, const Scoring& scoring);

// How many different classes the labels are of; 0 for numbers and where there are none.
int64_t DistinctClasses(const Dataset& data);

struct ModelClasses {
  std::vector<std::string> names = {};            // StoredClasses
  std::string output = "";                        // what tells them apart, for messages
  int64_t outputs = 0;                            // how many those are; 0: not known
  std::optional<int64_t> ignored = std::nullopt;  // a label that stands for no class
  bool probabilities = false;                     // what the loss takes as labels
  // Whether classes without names may take those of the data: when training begins.
  bool takes_names = false;
};

struct AlignedData {
  std::shared_ptr<const Dataset> data;  // labels are numbers of the model's outputs
  std::vector<std::string> names;       // what these are called; none: by their numbers
  std::string note;                     // for the user; "" if there is nothing to say
};

// Labels by name: each gets the number under which the model knows its class. Labels that
// are numbers stay so if they are below `outputs`; if there are as many different ones as
// outputs (1 to 10, or 3 and 7) training takes them for names. An error for labels that
// the model does not know says where the first stands and what the model knows. Where the loss
// takes probabilities, labels that are classes become such.
absl::StatusOr<AlignedData> AlignClasses(std::shared_ptr<const Dataset> data,
                                         const ModelClasses& model);

}  // namespace onward

#endif  // ONWARD_TRAINER_RUN_CLASS_LABELS_H_
