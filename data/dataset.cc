// SPDX-License-Identifier: Apache-2.0
#include "data/dataset.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/status.h"
#include "core/tensor/dispatch.h"
#include "data/arrays/array_dataset.h"
#include "data/data_options.h"
#include "data/file_bytes.h"
#include "data/pictures/picture_preparation.h"
#include "data/readers.h"
#include "data/split.h"
#include "data/tables/read_table.h"
#include "data/text/read_text.h"

namespace onward {
namespace {

// $ONWARD_CACHE/data/NAME, by default in ~/.cache/onward.
std::string CacheFolder(absl::string_view name) {
  if (const char* cache = std::getenv("ONWARD_CACHE"); cache != nullptr && *cache != '\0') {
    return absl::StrCat(cache, "/data/", name);
  }
  const char* home = std::getenv("HOME");
  return absl::StrCat(home == nullptr ? "" : home, "/.cache/onward/data/", name);
}

absl::StatusOr<LoadedData> ReadReadyMade(const std::string& kind,
                                         const std::vector<std::string>& folders, Split split) {
  for (const std::string& folder : folders) {
    if (IsFolder(folder)) return ReadMnist(folder, split);
  }
  return absl::NotFoundError(absl::StrCat(
      "data '", kind, "' is not there yet (looked in ", absl::StrJoin(folders, " and "),
      "); tools/data.sh fetches it, or name a folder with mnist:DIR"));
}

absl::StatusOr<LoadedData> ReadFashion(Split split) {
  // The second folder is where Debian's dataset-fashion-mnist installs it.
  ONWARD_ASSIGN_OR_RETURN(
      LoadedData data,
      ReadReadyMade("fashion", {CacheFolder("fashion"), "/usr/share/datasets/fashion-mnist"},
                    split));
  data.class_names = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                      "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
  return data;
}

absl::StatusOr<std::pair<std::string, std::string>> TwoPaths(const DataSpec& spec) {
  const std::vector<std::string> paths = absl::StrSplit(spec.path, ',');
  if (paths.size() != 2 || paths[0].empty() || paths[1].empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data '", spec.kind, ":", spec.path, "': expected two files with a comma between them"));
  }
  return std::make_pair(paths[0], paths[1]);
}

absl::StatusOr<LoadedData> Load(const DataSpec& spec) {
  const DataOptions& o = spec.options;
  if (spec.kind == "idx") {
    ONWARD_ASSIGN_OR_RETURN(const auto paths, TwoPaths(spec));
    return ReadIdx(paths.first, paths.second);
  }
  if (spec.kind == "npy") {
    if (!absl::StrContains(spec.path, ",")) return ReadNpyArrays(spec.path, "", o);
    ONWARD_ASSIGN_OR_RETURN(const auto paths, TwoPaths(spec));
    return ReadNpyArrays(paths.first, paths.second, o);
  }
  if (spec.kind == "mnist") return ReadMnist(spec.path, o.split);
  if (spec.kind == "digits") return ReadReadyMade("digits", {CacheFolder("mnist")}, o.split);
  if (spec.kind == "fashion") return ReadFashion(o.split);
  if (spec.kind == "npz") return ReadNpzArrays(spec.path, o);
  if (spec.kind == "images") return ReadImages(spec.path, o);
  if (spec.kind == "tar") return ReadTar(spec.path, o);
  return ReadCifar(absl::StrSplit(spec.path, ','));
}

// Readers of files with bytes as labels know only classes.
absl::Status ApplyTask(const DataOptions& options, LoadedData* data) {
  if (options.task != Task::kRegression || data->classes == 0) return absl::OkStatus();
  for (size_t i = 0; i < data->arrays.size(); ++i) {
    if (!data->arrays[i].is_label) continue;
    LoadedArray labels = std::move(data->arrays[i]);
    data->arrays.erase(data->arrays.begin() + static_cast<std::ptrdiff_t>(i));
    data->classes = 0;
    data->class_names.clear();
    return AddLabels(labels.rows, Task::kRegression, labels.name, data);
  }
  return absl::OkStatus();
}

// As it is known of the model, where the spec does not say otherwise.
absl::StatusOr<LoadedData> LoadPrepared(const DataContext& context, DataSpec* spec) {
  const PicturePreparation* known = PicturesKnown(context, spec->kind);
  if (known != nullptr) ApplyToFiles(*known, spec);
  TakeUnlabelled(context, spec);
  spec->options.pictures.model_size = context.picture_size;
  ONWARD_ASSIGN_OR_RETURN(LoadedData data, Load(*spec));
  ONWARD_RETURN_IF_ERROR(ApplyTask(spec->options, &data));
  if (known != nullptr) ApplyToArrays(*known, data, spec);
  if (std::optional<PicturePreparation> pictures = PicturesOf(*spec, data)) {
    data.preparation = std::make_shared<const Preparation>(
        Preparation{.table = {}, .pictures = std::move(pictures), .text = {}});
  }
  return data;
}

std::optional<TableFile> TableFileOf(const std::string& kind) {
  if (kind == "csv") return TableFile::kCsv;
  if (kind == "jsonl") return TableFile::kJsonLines;
  return std::nullopt;
}

absl::StatusOr<std::unique_ptr<Dataset>> Open(DataSpec spec, const DataContext& context) {
  if (spec.kind == "text") return OpenTextFile(spec.path, spec.options, context);
  const std::optional<TableFile> table = TableFileOf(spec.kind);
  const TextOptions& text = spec.options.text;
  const bool known_text = context.preparation != nullptr && context.preparation->text;
  if (table && (known_text || text.tokens || !text.column.empty() || !text.vocabulary.empty())) {
    return OpenTextTable(spec.path, *table, spec.options, context);
  }
  LoadedData data;
  if (table) {
    ONWARD_ASSIGN_OR_RETURN(data, ReadTable(spec.path, *table, spec.options, context));
  } else {
    ONWARD_ASSIGN_OR_RETURN(data, LoadPrepared(context, &spec));
  }
  return MakeArrayDataset(std::move(data), spec.options);
}

// The part that split= or fold= leaves.
absl::StatusOr<std::unique_ptr<Dataset>> TakePart(std::unique_ptr<Dataset> all,
                                                  const DataOptions& o) {
  if (!o.parts.any()) return all;
  const std::shared_ptr<const Dataset> shared = std::move(all);
  ONWARD_ASSIGN_OR_RETURN(SplitParts parts, SplitDataset(shared, o.parts));
  return std::move(o.part == Split::kTrain ? parts.train : parts.rest);
}

template <typename T>
bool FitsInteger(int64_t v) {
  if constexpr (std::is_same_v<T, uint64_t>) {
    return v >= 0;
  } else {
    return v >= static_cast<int64_t>(std::numeric_limits<T>::min()) &&
           v <= static_cast<int64_t>(std::numeric_limits<T>::max());
  }
}

// As int64, or nullopt for fractions, NaN and what does not fit.
template <typename T>
std::optional<int64_t> AsWhole(T v) {
  if constexpr (std::is_integral_v<T>) {
    if (std::is_same_v<T, uint64_t> && static_cast<uint64_t>(v) > uint64_t{1} << 62) {
      return std::nullopt;
    }
    return static_cast<int64_t>(v);
  } else {
    const double d = static_cast<double>(v);
    if (!(std::fabs(d) < 9.2e18) || d != std::floor(d)) return std::nullopt;
    return static_cast<int64_t>(d);
  }
}

template <typename From, typename To>
void ToFloats(const Tensor& t, Tensor* out) {
  const From* from = t.data<From>();
  for (int64_t i = 0; i < t.elements(); ++i) {
    out->data<To>()[i] = FromDouble<To>(static_cast<double>(from[i]));
  }
}

template <typename From, typename To>
absl::Status ToIntegers(const Tensor& t, Tensor* out) {
  const From* from = t.data<From>();
  for (int64_t i = 0; i < t.elements(); ++i) {
    const std::optional<int64_t> v = AsWhole(from[i]);
    if (!v || !FitsInteger<To>(*v)) {
      return absl::InvalidArgumentError(absl::StrCat("element ", i, " is ",
                                                     static_cast<double>(from[i]), ", which ",
                                                     DTypeName(out->dtype()), " cannot hold"));
    }
    out->data<To>()[i] = static_cast<To>(*v);
  }
  return absl::OkStatus();
}

}  // namespace

Shape BatchShape(int64_t count, const Shape& example) {
  Shape shape{count};
  for (int64_t d : example) shape.push_back(d);
  return shape;
}

absl::StatusOr<std::unique_ptr<Dataset>> ParseDataSpec(absl::string_view spec, Split split,
                                                       const DataContext& context) {
  ONWARD_ASSIGN_OR_RETURN(const DataSpec parsed, SplitDataSpec(spec, split));
  try {
    ONWARD_ASSIGN_OR_RETURN(std::unique_ptr<Dataset> all, Open(parsed, context));
    return TakePart(std::move(all), parsed.options);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat("data '", spec, "' does not fit into memory"));
  }
}

bool IsSplitSpec(absl::string_view spec) {
  const auto parsed = SplitDataSpec(spec, Split::kTrain);
  return parsed.ok() && parsed->options.parts.any() && parsed->options.part == Split::kTrain;
}

std::string Describe(const Dataset& dataset) {
  std::string out = absl::StrCat(dataset.size(), " examples");
  for (const FieldInfo& f : dataset.fields()) {
    absl::StrAppend(&out, ", ", f.name, " ", DTypeName(f.dtype), " ", f.shape.ToString());
  }
  if (dataset.classes() > 0) absl::StrAppend(&out, ", ", dataset.classes(), " classes");
  return out;
}

absl::StatusOr<Tensor> ConvertTensor(const Tensor& t, DType dtype) {
  if (t.dtype() == dtype) return t;
  Tensor out(dtype, t.shape());
  absl::Status status;
  bool known = false;
  DispatchNumeric(t.dtype(), [&]<typename From>() {
    known = DispatchFloating(dtype, [&]<typename To>() { ToFloats<From, To>(t, &out); }) ||
            DispatchIntegral(dtype, [&]<typename To>() { status = ToIntegers<From, To>(t, &out); });
  });
  if (!known) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot convert ", DTypeName(t.dtype()), " to ", DTypeName(dtype)));
  }
  if (!status.ok()) return status;
  return out;
}

}  // namespace onward
