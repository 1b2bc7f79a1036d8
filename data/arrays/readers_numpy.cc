// SPDX-License-Identifier: Apache-2.0
// Data sets in NumPy's files.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "core/base/status.h"
#include "data/arrays/npy.h"
#include "data/readers.h"

namespace onward {
namespace {

// An array of the file, and what it is called here.
struct Chosen {
  std::string name;
  size_t index = 0;
};

// Files with x_train, y_train, x_test, y_test hold both halves.
std::vector<Chosen> ChooseSplit(const std::vector<std::string>& names, Split split) {
  const auto ends = [](absl::string_view ending) {
    return [ending](const std::string& name) { return absl::EndsWith(name, ending); };
  };
  const bool halves = std::any_of(names.begin(), names.end(), ends("_train")) &&
                      std::any_of(names.begin(), names.end(), ends("_test"));
  const absl::string_view ending = split == Split::kTrain ? "_train" : "_test";
  std::vector<Chosen> chosen;
  for (size_t i = 0; i < names.size(); ++i) {
    absl::string_view name = names[i];
    if (!halves || absl::ConsumeSuffix(&name, ending)) chosen.push_back({std::string(name), i});
  }
  return chosen;
}

std::string FindLabel(const std::vector<Chosen>& arrays) {
  for (const char* usual : {"y", "label", "labels", "target", "targets"}) {
    for (const Chosen& array : arrays) {
      if (absl::EqualsIgnoreCase(array.name, usual)) return array.name;
    }
  }
  return "";
}

absl::StatusOr<Rows> OpenNpyRows(const std::string& path) {
  ONWARD_ASSIGN_OR_RETURN(StoredBytes file, StoredBytes::Open(path));
  ONWARD_ASSIGN_OR_RETURN(file, file.HeldIfSmall());
  ONWARD_ASSIGN_OR_RETURN(const NpyArray array, OpenNpy(file));
  return NpyRows(array);
}

}  // namespace

absl::StatusOr<LoadedData> ReadNpzArrays(const std::string& path, const DataOptions& options) {
  ONWARD_ASSIGN_OR_RETURN(const NpzFile npz, NpzFile::Open(path));
  const std::vector<Chosen> arrays = ChooseSplit(npz.names(), options.split);
  const std::string label = options.label.value_or(FindLabel(arrays));
  const auto is_label = [&](const Chosen& a) { return a.name == label; };
  if (options.label && std::none_of(arrays.begin(), arrays.end(), is_label)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": has no array '", label, "' for label=; it has ",
        absl::StrJoin(arrays, ", ",
                      [](std::string* out, const Chosen& a) { out->append(a.name); })));
  }
  LoadedData data;
  data.source = path;
  for (const Chosen& chosen : arrays) {
    ONWARD_ASSIGN_OR_RETURN(NpyArray array, npz.Array(chosen.index));
    ONWARD_ASSIGN_OR_RETURN(array.elements, array.elements.HeldIfSmall());
    ONWARD_ASSIGN_OR_RETURN(Rows rows, NpyRows(array));
    if (chosen.name == label) {
      ONWARD_RETURN_IF_ERROR(AddLabels(rows, options.task, chosen.name, &data));
    } else {
      data.arrays.push_back({chosen.name, std::move(rows), false, 1});
    }
  }
  return data;
}

absl::StatusOr<LoadedData> ReadNpyArrays(const std::string& inputs, const std::string& labels,
                                         const DataOptions& options) {
  LoadedData data;
  data.source = inputs;
  ONWARD_ASSIGN_OR_RETURN(Rows x, OpenNpyRows(inputs));
  data.arrays.push_back({"x", std::move(x), false, 1});
  if (labels.empty()) return data;
  ONWARD_ASSIGN_OR_RETURN(const Rows y, OpenNpyRows(labels));
  data.source = labels;
  ONWARD_RETURN_IF_ERROR(AddLabels(y, options.task, "y", &data));
  data.source = absl::StrCat(inputs, ", ", labels);
  return data;
}

}  // namespace onward
