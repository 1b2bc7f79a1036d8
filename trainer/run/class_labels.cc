// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/class_labels.h"

#include <algorithm>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "data/dataset_view.h"
#include "data/mixing.h"
#include "trainer/report/log/jsonl.h"
#include "training_info/export.h"

namespace onward {
namespace {

constexpr size_t kMostShown = 20;

// From labels of the data to classes of the model; labels that are not in it stay.
using Renumbering = absl::flat_hash_map<int64_t, int64_t>;

// The data set under the model's numbers and names.
class RenumberedDataset : public DatasetView {
 public:
  RenumberedDataset(std::shared_ptr<const Dataset> data, Renumbering numbers,
                    std::vector<std::string> names)
      : DatasetView(std::move(data)), numbers_(std::move(numbers)), names_(std::move(names)) {
    const std::vector<FieldInfo> fields = base().fields();
    while (label_ < fields.size() && !fields[label_].is_label) ++label_;
  }

  absl::Status Fill(absl::Span<const int64_t> indices, std::vector<Tensor>* batch) const override {
    ONWARD_RETURN_IF_ERROR(base().Fill(indices, batch));
    Renumber(&(*batch)[label_]);
    return absl::OkStatus();
  }
  absl::Status FillVaried(absl::Span<const int64_t> indices, absl::Span<const uint64_t> keys,
                          std::vector<Tensor>* batch) const override {
    ONWARD_RETURN_IF_ERROR(base().FillVaried(indices, keys, batch));
    Renumber(&(*batch)[label_]);
    return absl::OkStatus();
  }
  int64_t classes() const override { return static_cast<int64_t>(names_.size()); }
  std::vector<std::string> class_names() const override { return names_; }
  bool names_classes() const override { return true; }
  Tensor class_labels() const override {
    Tensor labels = base().class_labels();
    Renumber(&labels);
    return labels;
  }

 private:
  void Renumber(Tensor* labels) const {
    for (int64_t i = 0; i < labels->elements(); ++i) {
      const auto it = numbers_.find(labels->data<int64_t>()[i]);
      if (it != numbers_.end()) labels->data<int64_t>()[i] = it->second;
    }
  }

  Renumbering numbers_;
  std::vector<std::string> names_;
  size_t label_ = 0;
};

// The labels that stand for a class, each once, in order.
std::vector<int64_t> DifferentLabels(const Tensor& labels, std::optional<int64_t> ignored) {
  absl::flat_hash_set<int64_t> seen;
  int64_t last = -1;
  for (int64_t label : labels.values<int64_t>()) {
    if (label < 0 || label == last || label == ignored) continue;
    seen.insert(label);
    last = label;
  }
  std::vector<int64_t> sorted(seen.begin(), seen.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

std::string Shown(const std::vector<std::string>& names) {
  const size_t count = std::min(names.size(), kMostShown);
  std::string text = absl::StrCat(
      "'", absl::StrJoin(names.begin(), names.begin() + static_cast<int64_t>(count), "', '"), "'");
  if (names.size() > count) absl::StrAppend(&text, " and ", names.size() - count, " more");
  return text;
}

std::vector<std::string> Texts(const std::vector<int64_t>& numbers) {
  std::vector<std::string> texts;
  for (int64_t n : numbers) texts.push_back(absl::StrCat(n));
  return texts;
}

// Where one of `labels` comes first.
std::string FirstPlace(const Dataset& data, const Tensor& all, const std::set<int64_t>& labels) {
  const int64_t each = all.elements() / std::max<int64_t>(data.size(), 1);
  for (int64_t i = 0; i < all.elements(); ++i) {
    if (labels.contains(all.data<int64_t>()[i])) return data.place(i / std::max<int64_t>(each, 1));
  }
  return data.source();
}

std::string Known(const ModelClasses& model) {
  if (!model.names.empty()) return absl::StrCat("the model knows ", Shown(model.names));
  return absl::StrCat("output '", model.output, "' tells ", model.outputs, " classes apart, 0 to ",
                      model.outputs - 1);
}

absl::Status UnknownLabels(const Dataset& data, const Tensor& labels,
                           const std::set<int64_t>& unknown, const std::vector<std::string>& called,
                           const ModelClasses& model) {
  return absl::InvalidArgumentError(
      absl::StrCat(data.source(), ": ", called.size() == 1 ? "the class " : "the classes ",
                   Shown(called), called.size() == 1 ? " is" : " are",
                   " unknown to the model (first at ", FirstPlace(data, labels, unknown), "); ",
                   Known(model), "; to train on other classes, give it a new head with --head N"));
}

absl::Status CountDisagrees(const Dataset& data, const std::vector<std::string>& names,
                            const ModelClasses& model) {
  const size_t count = names.size(), shown = std::min(count, kMostShown);
  const std::string classes =
      absl::StrCat(absl::StrJoin(names.begin(), names.begin() + static_cast<int64_t>(shown), ", "),
                   count > shown ? absl::StrCat(" and ", count - shown, " more") : "");
  return absl::InvalidArgumentError(
      absl::StrCat(data.source(), ": ", count, count == 1 ? " class (" : " classes (", classes,
                   "), the model has ", model.outputs,
                   count == 1 ? ": there is nothing to tell apart; pictures have a folder for each "
                                "class, tables a column of labels (label=COLUMN)"
                              : absl::StrCat(": --head ", count)));
}

// A model with names meets data with names.
absl::StatusOr<AlignedData> ByName(std::shared_ptr<const Dataset> data, const Tensor& labels,
                                   const std::vector<std::string>& called,
                                   const ModelClasses& model) {
  absl::flat_hash_map<std::string, int64_t> index;
  for (size_t i = 0; i < model.names.size(); ++i) index[model.names[i]] = static_cast<int64_t>(i);
  Renumbering numbers;
  std::set<int64_t> unknown;
  std::vector<std::string> unknown_names;
  const std::vector<int64_t> different =
      DifferentLabels(labels, data->names_classes() ? std::optional<int64_t>() : model.ignored);
  for (size_t k = 0; k < different.size(); ++k) {
    const int64_t label = different[k];
    const std::string& name = data->names_classes() ? called[label] : called[k];
    const auto it = index.find(name);
    if (it != index.end()) {
      numbers[label] = it->second;
    } else {
      unknown.insert(label);
      unknown_names.push_back(name);
    }
  }
  if (!unknown.empty()) return UnknownLabels(*data, labels, unknown, unknown_names, model);
  auto renumbered =
      std::make_shared<RenumberedDataset>(std::move(data), std::move(numbers), model.names);
  return AlignedData{std::move(renumbered), model.names, ""};
}

// Labels are numbers, and the model has no names for its outputs, or others.
absl::StatusOr<AlignedData> ByNumber(std::shared_ptr<const Dataset> data, const Tensor& labels,
                                     const ModelClasses& model) {
  const std::vector<int64_t> different = DifferentLabels(labels, model.ignored);
  const int64_t outputs =
      model.names.empty() ? model.outputs : static_cast<int64_t>(model.names.size());
  if (outputs == 0 || different.empty() || different.back() < outputs) {
    AlignedData aligned{data, model.names, ""};
    if (!model.names.empty()) {
      aligned.data = std::make_shared<RenumberedDataset>(data, Renumbering(), model.names);
      aligned.note = absl::StrCat("the labels of ", data->source(),
                                  " are numbers; they are taken for those of the model's classes ",
                                  Shown(model.names));
    }
    return aligned;
  }
  if (model.takes_names && static_cast<int64_t>(different.size()) == outputs &&
      model.names.empty()) {
    Renumbering numbers;
    for (size_t i = 0; i < different.size(); ++i) numbers[different[i]] = static_cast<int64_t>(i);
    const std::vector<std::string> names = Texts(different);
    return AlignedData{std::make_shared<RenumberedDataset>(data, std::move(numbers), names), names,
                       absl::StrCat("the classes of ", data->source(), " are the numbers ",
                                    Shown(names), ", in the order of the model's outputs")};
  }
  if (model.takes_names && model.names.empty()) {
    const std::vector<std::string> texts = Texts(different);
    return Annotate(CountDisagrees(*data, texts, model),
                    absl::StrCat("label ", different.back(), " at ",
                                 FirstPlace(*data, labels, {different.back()})));
  }
  const auto first = std::lower_bound(different.begin(), different.end(), outputs);
  const std::vector<int64_t> beyond(first, different.end());
  return UnknownLabels(*data, labels, {beyond.begin(), beyond.end()}, Texts(beyond), model);
}

// The data has names, the model has none.
absl::StatusOr<AlignedData> TakeNames(std::shared_ptr<const Dataset> data,
                                      const ModelClasses& model) {
  const std::vector<std::string> names = data->class_names();
  const int64_t count = static_cast<int64_t>(names.size());
  const bool fits = model.outputs == 0 || count == model.outputs;
  if (model.takes_names && fits) return AlignedData{data, names, ""};
  if (model.takes_names || (model.outputs > 0 && count > model.outputs)) {
    return CountDisagrees(*data, names, model);
  }
  return AlignedData{data, fits ? names : std::vector<std::string>(),
                     absl::StrCat("the model does not say what its classes are; those of ",
                                  data->source(), " are numbered in their order: ", Shown(names))};
}

bool AllNumbers(const std::vector<std::string>& names) {
  int64_t ignored;
  return std::all_of(names.begin(), names.end(),
                     [&](const std::string& n) { return absl::SimpleAtoi(n, &ignored); });
}

absl::StatusOr<AlignedData> AlignNumbers(std::shared_ptr<const Dataset> data,
                                         const ModelClasses& model) {
  if (!model.names.empty() && model.outputs > 0 &&
      static_cast<int64_t>(model.names.size()) != model.outputs) {
    return absl::InvalidArgumentError(
        absl::StrCat("the file names ", model.names.size(), " classes (", kMetaClasses,
                     "), but output '", model.output, "' tells ", model.outputs, " apart"));
  }
  const Tensor labels = data->class_labels();
  if (data->classes() == 0 || labels.dtype() != DType::kInt64) {
    return AlignedData{std::move(data), model.names, ""};
  }
  if (model.names.empty()) {
    return data->names_classes() ? TakeNames(std::move(data), model)
                                 : ByNumber(std::move(data), labels, model);
  }
  if (data->names_classes()) {
    const std::vector<std::string> called = data->class_names();
    return ByName(std::move(data), labels, called, model);
  }
  if (!AllNumbers(model.names)) return ByNumber(std::move(data), labels, model);
  const std::vector<std::string> called = Texts(DifferentLabels(labels, model.ignored));
  return ByName(std::move(data), labels, called, model);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> StoredClasses(const Model& model) {
  const std::string text = model.Metadata(kMetaClasses);
  if (text.empty()) return std::vector<std::string>();
  const std::string where = absl::StrCat("'", model.path(), "': metadata ", kMetaClasses);
  auto names = ParseJsonStringList(text);
  if (!names.ok()) return Annotate(names.status(), where);
  const std::set<std::string> different(names->begin(), names->end());
  if (different.size() != names->size()) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": a class is named twice"));
  }
  return names;
}

void StoreClasses(const std::vector<std::string>& names, Model* model) {
  model->SetMetadata(kMetaClasses, names.empty() ? "" : JsonStringList(names));
}

int64_t OutputClasses(const ValueType* output, const Scoring& scoring) {
  if (output == nullptr || !output->has_rank) return 0;
  if (scoring.binary || output->rank() < 2) return 2;
  const Dim& dim = output->dims[scoring.classes_last ? output->rank() - 1 : 1];
  if (!dim.known()) return 0;
  return dim.value == 1 ? 2 : dim.value;
}

int64_t DistinctClasses(const Dataset& data) {
  if (data.classes() == 0) return 0;
  if (data.names_classes()) return data.classes();
  const Tensor labels = data.class_labels();
  if (labels.dtype() != DType::kInt64) return data.classes();
  return std::max<int64_t>(1, static_cast<int64_t>(DifferentLabels(labels, std::nullopt).size()));
}

absl::StatusOr<AlignedData> AlignClasses(std::shared_ptr<const Dataset> data,
                                         const ModelClasses& model) {
  ONWARD_ASSIGN_OR_RETURN(AlignedData aligned, AlignNumbers(std::move(data), model));
  if (model.probabilities && aligned.data->classes() > 0) {
    const int64_t classes = model.outputs > 0 ? model.outputs : aligned.data->classes();
    ONWARD_ASSIGN_OR_RETURN(aligned.data, WithSoftLabels(aligned.data, classes));
  }
  return aligned;
}

}  // namespace onward
