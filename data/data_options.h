// SPDX-License-Identifier: Apache-2.0
// The parts of a data spec: KIND:PATH?NAME=VALUE&NAME=VALUE.
#ifndef ONWARD_DATA_DATA_OPTIONS_H_
#define ONWARD_DATA_DATA_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/shape.h"
#include "data/dataset.h"
#include "data/pictures/picture_options.h"
#include "data/split.h"
#include "data/tables/table_options.h"
#include "data/text/text_options.h"

namespace onward {

enum class Task { kAuto, kClasses, kRegression };

// value = (stored * scale + shift - mean) / std, on everything but the label.
struct DataOptions {
  Split split = Split::kTrain;
  int64_t offset = 0;
  std::optional<int64_t> limit;
  std::optional<uint64_t> shuffle;
  std::optional<double> scale, shift;
  std::vector<double> mean, std;  // one number, or one per channel
  std::optional<Shape> shape;
  bool channels_last = false;
  Task task = Task::kAuto;
  std::optional<std::string> label;
  TableOptions table;
  TextOptions text;
  PictureOptions pictures;
  TrainingHints hints;
  SplitRule parts;             // split=0.8, fold=1/5
  Split part = Split::kTrain;  // which of both this is

  bool scales() const { return scale || shift || !mean.empty() || !std.empty(); }
};

struct DataSpec {
  std::string kind;
  std::string path;  // empty for digits and fashion
  DataOptions options;
};

// Splits and checks a spec. Unknown kinds and options are errors that list the
// known ones.
absl::StatusOr<DataSpec> SplitDataSpec(absl::string_view spec, Split split);

// The spec with one more option, "name=value".
std::string WithOption(absl::string_view spec, absl::string_view option);

}  // namespace onward

#endif  // ONWARD_DATA_DATA_OPTIONS_H_
