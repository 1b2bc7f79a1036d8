// SPDX-License-Identifier: Apache-2.0
// What readers produce, arrays with one row per example, and the data set over them: rows
// stay as they were stored (images as bytes, or as files) and become numbers a model takes
// in Fill.
#ifndef ONWARD_DATA_ARRAYS_ARRAY_DATASET_H_
#define ONWARD_DATA_ARRAYS_ARRAY_DATASET_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/arrays/rows.h"
#include "data/data_options.h"
#include "data/dataset.h"

namespace onward {

struct LoadedArray {
  std::string name;
  Rows rows;  // a tensor [examples, ...] will do
  bool is_label = false;
  double default_scale = 1;        // where the spec gives none
  bool pictures_prepared = false;  // size, fit, channels and augment are already applied
};

struct LoadedData {
  std::string source;  // for messages
  std::vector<LoadedArray> arrays;
  int64_t classes = 0;
  std::vector<std::string> class_names;  // empty: labels are numbers
  // Where a row stands, for messages: "row 3 (line 4) of rows.csv". By default its number.
  std::function<std::string(int64_t row)> place;
  bool rows_chosen = false;                        // offset, limit and shuffle are already applied
  std::vector<std::string> notes;                  // Dataset::notes()
  std::shared_ptr<const Preparation> preparation;  // Dataset::preparation()
  Standard target;                                 // Dataset::target()
};

// Adds the label "y": integers as int64 with the number of classes, text as the classes of
// its different words in their order, anything else as floats; `task` overrides what the
// type suggests. Class labels of shape [examples, 1] lose the last axis.
absl::Status AddLabels(Tensor labels, Task task, std::string name, LoadedData* data);
// The same of labels that may be too large for memory (a picture for each example): they
// are read once, and again when they are asked for.
absl::Status AddLabels(const Rows& labels, Task task, std::string name, LoadedData* data);

// Labels as text, such as a file holds: whole numbers are classes, other numbers floats, and
// everything else words.
absl::Status AddTextLabels(const std::vector<std::string>& labels, Task task, LoadedData* data);

// The rows that offset, limit and shuffle leave of `count`, in order.
absl::StatusOr<std::vector<int64_t>> ChooseRows(int64_t count, const DataOptions& options,
                                                absl::string_view source);

absl::StatusOr<std::unique_ptr<Dataset>> MakeArrayDataset(LoadedData data,
                                                          const DataOptions& options);

}  // namespace onward

#endif  // ONWARD_DATA_ARRAYS_ARRAY_DATASET_H_
