// SPDX-License-Identifier: Apache-2.0
// Sequences of different length: a batch is as long as its longest example needs, and the rest
// is filled up, labels with one that the loss ignores.
#ifndef ONWARD_DATA_PADDED_H_
#define ONWARD_DATA_PADDED_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/dataset.h"

namespace onward {

struct PaddedField {
  std::string name;
  DType dtype = DType::kInt64;
  double padding = 0;  // for labels the one that the loss ignores
  bool is_label = false;
  // An example's values, [length]; called from several threads.
  std::function<absl::StatusOr<Tensor>(int64_t example)> read;
};

struct PaddedOptions {
  std::string source;   // for messages
  int64_t size = 0;     // examples
  int64_t longest = 0;  // longer ones are cut
  // Lengths of batches are multiples of it, so that there are few different ones: a graph is
  // compiled for each.
  int64_t multiple = 8;
  int64_t classes = 0;  // Dataset::classes()
  std::vector<std::string> class_names = {};
};

// All fields of an example have the same length. FieldInfo::shape is {longest}, and `varies`.
absl::StatusOr<std::unique_ptr<Dataset>> MakePaddedDataset(std::vector<PaddedField> fields,
                                                           const PaddedOptions& options);

}  // namespace onward

#endif  // ONWARD_DATA_PADDED_H_
