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

using NamedArrays = std::vector<std::pair<std::string, Tensor>>;

std::string Names(const NamedArrays& arrays) {
  return absl::StrJoin(arrays, ", ", [](std::string* out, const auto& a) { out->append(a.first); });
}

// Files with x_train, y_train, x_test, y_test hold both halves.
NamedArrays ChooseSplit(NamedArrays arrays, Split split) {
  const auto ends = [](absl::string_view ending) {
    return [ending](const auto& a) { return absl::EndsWith(a.first, ending); };
  };
  if (std::none_of(arrays.begin(), arrays.end(), ends("_train")) ||
      std::none_of(arrays.begin(), arrays.end(), ends("_test"))) {
    return arrays;
  }
  const absl::string_view ending = split == Split::kTrain ? "_train" : "_test";
  NamedArrays chosen;
  for (auto& [name, tensor] : arrays) {
    absl::string_view stem = name;
    if (absl::ConsumeSuffix(&stem, ending)) chosen.emplace_back(stem, std::move(tensor));
  }
  return chosen;
}

std::string FindLabel(const NamedArrays& arrays) {
  for (const char* usual : {"y", "label", "labels", "target", "targets"}) {
    for (const auto& [name, tensor] : arrays) {
      if (absl::EqualsIgnoreCase(name, usual)) return name;
    }
  }
  return "";
}

}  // namespace

absl::StatusOr<LoadedData> ReadNpzArrays(const std::string& path, const DataOptions& options) {
  ONWARD_ASSIGN_OR_RETURN(NamedArrays arrays, ReadNpz(path));
  arrays = ChooseSplit(std::move(arrays), options.split);
  const std::string label = options.label.value_or(FindLabel(arrays));
  const auto is_label = [&](const auto& a) { return a.first == label; };
  if (options.label && std::none_of(arrays.begin(), arrays.end(), is_label)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has no array '", label, "' for label=; it has ", Names(arrays)));
  }
  LoadedData data;
  data.source = path;
  for (auto& [name, tensor] : arrays) {
    if (name == label) {
      ONWARD_RETURN_IF_ERROR(AddLabels(std::move(tensor), options.task, name, &data));
    } else {
      data.arrays.push_back({name, std::move(tensor), false, 1});
    }
  }
  return data;
}

absl::StatusOr<LoadedData> ReadNpyArrays(const std::string& inputs, const std::string& labels,
                                         const DataOptions& options) {
  LoadedData data;
  data.source = inputs;
  ONWARD_ASSIGN_OR_RETURN(Tensor x, ReadNpy(inputs));
  data.arrays.push_back({"x", std::move(x), false, 1});
  if (labels.empty()) return data;
  ONWARD_ASSIGN_OR_RETURN(Tensor y, ReadNpy(labels));
  data.source = labels;
  ONWARD_RETURN_IF_ERROR(AddLabels(std::move(y), options.task, "y", &data));
  data.source = absl::StrCat(inputs, ", ", labels);
  return data;
}

}  // namespace onward
