// SPDX-License-Identifier: Apache-2.0
// What readers found as labels, as classes or numbers (array_dataset.h).
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "data/arrays/array_dataset.h"

namespace onward {
namespace {

constexpr int64_t kMostClasses = int64_t{1} << 31;
constexpr size_t kMostTextClasses = 10000;

// Floats whose values are whole numbers, as int64.
absl::StatusOr<Tensor> WholeNumbers(const Tensor& t, absl::string_view source) {
  auto whole = ConvertTensor(t, DType::kInt64);
  if (!whole.ok()) {
    return Annotate(whole.status(),
                    absl::StrCat(source, ": task=classes needs whole numbers as labels"));
  }
  return whole;
}

// Text as class numbers, its different words in their order as names.
absl::StatusOr<Tensor> NumberedWords(const Tensor& words, Task task, const std::string& name,
                                     LoadedData* data) {
  if (task == Task::kRegression) {
    return absl::InvalidArgumentError(absl::StrCat(
        data->source, ": labels '", name, "' are words, which task=regression cannot use"));
  }
  std::map<std::string, int64_t> classes;
  for (const std::string& word : words.values<std::string>()) classes.emplace(word, 0);
  if (classes.size() > kMostTextClasses) {
    return absl::InvalidArgumentError(absl::StrCat(data->source, ": labels '", name, "' are ",
                                                   classes.size(),
                                                   " different words; are they the labels?"));
  }
  data->class_names.clear();
  for (auto& [word, number] : classes) {
    number = static_cast<int64_t>(data->class_names.size());
    data->class_names.push_back(word);
  }
  Tensor numbers(DType::kInt64, words.shape());
  for (int64_t i = 0; i < words.elements(); ++i) {
    numbers.data<int64_t>()[i] = classes.at(words.data<std::string>()[i]);
  }
  return numbers;
}

}  // namespace

absl::Status AddLabels(Tensor labels, Task task, std::string name, LoadedData* data) {
  if (labels.dtype() == DType::kString) {
    ONWARD_ASSIGN_OR_RETURN(labels, NumberedWords(labels, task, name, data));
  }
  const bool whole = IsInteger(labels.dtype()) || labels.dtype() == DType::kBool;
  if (!whole && !IsFloating(labels.dtype())) {
    return absl::InvalidArgumentError(absl::StrCat(data->source, ": labels '", name, "' are ",
                                                   DTypeName(labels.dtype()),
                                                   ", expected numbers"));
  }
  if (task == Task::kRegression || (!whole && task == Task::kAuto)) {
    const DType dtype = labels.dtype() == DType::kDouble ? DType::kDouble : DType::kFloat;
    ONWARD_ASSIGN_OR_RETURN(Tensor values, ConvertTensor(labels, dtype));
    data->arrays.push_back({std::move(name), std::move(values), true, 1});
    return absl::OkStatus();
  }
  ONWARD_ASSIGN_OR_RETURN(Tensor values, WholeNumbers(labels, data->source));
  if (values.shape().rank() == 2 && values.shape()[1] == 1) {
    values = values.Reshaped({values.shape()[0]});
  }
  int64_t largest = -1;
  for (int64_t v : values.values<int64_t>()) largest = std::max(largest, v);
  if (largest >= kMostClasses) {
    return absl::InvalidArgumentError(
        absl::StrCat(data->source, ": label ", largest,
                     " is too large for a class number; for regression add task=regression"));
  }
  data->classes = std::max<int64_t>(largest + 1, static_cast<int64_t>(data->class_names.size()));
  data->arrays.push_back({std::move(name), std::move(values), true, 1});
  return absl::OkStatus();
}

}  // namespace onward
