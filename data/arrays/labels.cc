// SPDX-License-Identifier: Apache-2.0
// What readers found as labels, as classes or numbers (array_dataset.h).
#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "data/arrays/array_dataset.h"

namespace onward {
namespace {

constexpr int64_t kMostClasses = int64_t{1} << 31;
constexpr int64_t kPieceElements = int64_t{1} << 20;

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

absl::Status AddClasses(Rows labels, int64_t largest, std::string name, LoadedData* data) {
  if (largest >= kMostClasses) {
    return absl::InvalidArgumentError(
        absl::StrCat(data->source, ": label ", largest,
                     " is too large for a class number; for regression add task=regression"));
  }
  data->classes = std::max<int64_t>(largest + 1, static_cast<int64_t>(data->class_names.size()));
  data->arrays.push_back({std::move(name), std::move(labels), true, 1});
  return absl::OkStatus();
}

// Reads all labels once, a few rows at a time.
absl::StatusOr<int64_t> LargestLabel(const Rows& labels, absl::string_view source) {
  const int64_t piece = std::max<int64_t>(1, kPieceElements / labels->elements());
  int64_t largest = -1;
  for (int64_t first = 0; first < labels->count(); first += piece) {
    const int64_t count = std::min(piece, labels->count() - first);
    Tensor some(labels->dtype(), {count, labels->elements()});
    ONWARD_RETURN_IF_ERROR(labels->Read(first, count, some.raw()));
    ONWARD_ASSIGN_OR_RETURN(const Tensor values, WholeNumbers(some, source));
    for (int64_t v : values.values<int64_t>()) largest = std::max(largest, v);
  }
  return largest;
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
  return AddClasses(std::move(values), largest, std::move(name), data);
}

absl::Status AddLabels(const Rows& labels, Task task, std::string name, LoadedData* data) {
  if (labels->count() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        data->source, ": '", name, "' is a single number, expected one row per example"));
  }
  const DType dtype = labels->dtype();
  const bool whole = IsInteger(dtype) || dtype == DType::kBool;
  if (labels->elements() <= 1 || (!whole && !IsFloating(dtype))) {
    ONWARD_ASSIGN_OR_RETURN(Tensor all, ReadRows(labels));
    return AddLabels(std::move(all), task, std::move(name), data);
  }
  if (task == Task::kRegression || (!whole && task == Task::kAuto)) {
    const DType wanted = dtype == DType::kDouble ? DType::kDouble : DType::kFloat;
    data->arrays.push_back({std::move(name), ConvertedRows(labels, wanted), true, 1});
    return absl::OkStatus();
  }
  ONWARD_ASSIGN_OR_RETURN(const int64_t largest, LargestLabel(labels, data->source));
  return AddClasses(ConvertedRows(labels, DType::kInt64), largest, std::move(name), data);
}

absl::Status AddTextLabels(const std::vector<std::string>& labels, Task task, LoadedData* data) {
  const auto count = static_cast<int64_t>(labels.size());
  Tensor whole(DType::kInt64, {count}), numbers(DType::kFloat, {count});
  bool all_whole = true, all_numbers = true;
  for (int64_t i = 0; i < count; ++i) {
    all_whole = all_whole && absl::SimpleAtoi(labels[i], whole.data<int64_t>() + i);
    all_numbers = all_numbers && absl::SimpleAtof(labels[i], numbers.data<float>() + i) &&
                  std::isfinite(numbers.data<float>()[i]);
  }
  if (all_whole) return AddLabels(std::move(whole), task, "y", data);
  if (all_numbers) return AddLabels(std::move(numbers), task, "y", data);
  Tensor words(DType::kString, {count});
  std::copy(labels.begin(), labels.end(), words.data<std::string>());
  return AddLabels(std::move(words), task, "y", data);
}

}  // namespace onward
