// SPDX-License-Identifier: Apache-2.0
// onward predict: what a model says of each example.
#include "trainer/run/predict.h"

#include <algorithm>
#include <iostream>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/commands.h"
#include "cli/compute_flags.h"
#include "cli/open_data.h"
#include "core/base/atomic_file.h"
#include "core/base/json.h"
#include "core/base/status.h"
#include "data/data_options.h"
#include "trainer/prepare/stored.h"
#include "trainer/run/class_labels.h"
#include "trainer/run/judging.h"
#include "training_info/author.h"
#include "training_info/lower.h"
#include "training_info/step.h"

namespace onward {
namespace {

constexpr double kMostShown = 1000000;

// A field of a CSV file, in quotes where it needs them.
std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

// The columns of the result, and one example in each of its forms.
class ResultRows {
 public:
  ResultRows(const Args& args, const Predictor& predictor, const Dataset& data, bool pictures)
      : predictor_(predictor),
        data_(data),
        pictures_(pictures),
        top_(static_cast<size_t>(args.Int("top"))),
        all_(args.Has("probabilities")) {}

  std::string Header(size_t values) const {
    std::vector<std::string> names = {pictures_ ? "file" : "row"};
    if (predictor_.has_labels()) names.push_back("actual");
    if (!predictor_.classifies()) {
      for (size_t i = 0; i < values; ++i) {
        names.push_back(values == 1 ? "prediction" : absl::StrCat("prediction_", i));
      }
    } else {
      for (size_t i = 1; i <= std::min(top_, values); ++i) {
        const std::string number = i == 1 ? "" : absl::StrCat("_", i);
        names.push_back(absl::StrCat("prediction", number));
        names.push_back(absl::StrCat("probability", number));
      }
      for (size_t c = 0; all_ && c < values; ++c) {
        names.push_back(CsvField(absl::StrCat("p ", predictor_.ClassName(c))));
      }
    }
    return absl::StrJoin(names, ",") + "\n";
  }

  std::string Line(const PredictedRow& row) const {
    std::vector<std::string> fields = {CsvField(Name(row))};
    if (predictor_.has_labels()) fields.push_back(CsvField(row.actual));
    if (predictor_.classifies()) {
      for (size_t c : Best(row)) {
        fields.push_back(CsvField(predictor_.ClassName(c)));
        fields.push_back(JsonNumber(row.values[c]));
      }
    }
    for (float v : row.values) {
      if (all_ || !predictor_.classifies()) fields.push_back(JsonNumber(v));
    }
    return absl::StrJoin(fields, ",") + "\n";
  }

  std::string Object(const PredictedRow& row) const {
    JsonWriter w;
    w.BeginObject();
    if (pictures_) {
      w.Field("file", Name(row));
    } else {
      w.Field("row", row.example + 1);
    }
    if (predictor_.has_labels()) WriteActual(row, &w);
    if (!predictor_.classifies()) {
      w.Key("prediction");
      if (row.values.size() == 1) {
        w.Value(row.values[0]);
      } else {
        w.Values(std::vector<float>(row.values.begin(), row.values.end()));
      }
      return w.EndObject().text();
    }
    const std::vector<size_t> best = Best(row);
    w.Field("prediction", predictor_.ClassName(best[0])).Field("probability", row.values[best[0]]);
    if (top_ > 1 || all_) {
      w.Key("probabilities").BeginObject();
      for (size_t c : all_ ? Sorted(row) : best) w.Field(predictor_.ClassName(c), row.values[c]);
      w.EndObject();
    }
    return w.EndObject().text();
  }

 private:
  // A name, or a number.
  void WriteActual(const PredictedRow& row, JsonWriter* w) const {
    double number = 0;
    if (!predictor_.classifies() && absl::SimpleAtod(row.actual, &number)) {
      w->Field("actual", static_cast<float>(number));
    } else {
      w->Field("actual", row.actual);
    }
  }
  std::string Name(const PredictedRow& row) const {
    return pictures_ ? data_.place(row.example) : absl::StrCat(row.example + 1);
  }
  // Classes, the most probable first.
  std::vector<size_t> Sorted(const PredictedRow& row) const {
    std::vector<size_t> order(row.values.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return row.values[a] > row.values[b]; });
    return order;
  }
  std::vector<size_t> Best(const PredictedRow& row) const {
    std::vector<size_t> order = Sorted(row);
    order.resize(std::min(top_, order.size()));
    return order;
  }

  const Predictor& predictor_;
  const Dataset& data_;
  bool pictures_;
  size_t top_;
  bool all_;
};

// What the file says of itself that decides how its scores are read.
absl::StatusOr<PredictOptions> OptionsOf(const Args& args, const Model& model) {
  PredictOptions options;
  options.output =
      args.Has("train-output") ? args.String("train-output") : model.Metadata(kMetaOutput);
  if (args.Has("batch")) options.batch = args.Int("batch");
  options.loss = StoredLoss(model);
  options.looked_at = std::as_const(model).weights().PageReleaser();
  ONWARD_ASSIGN_OR_RETURN(options.classes, StoredClasses(model));
  ONWARD_ASSIGN_OR_RETURN(const Preparation preparation, StoredPreparation(model));
  if (preparation.table && !options.loss) {
    options.classifies = preparation.table->task == LabelTask::kClasses;
  }
  return options;
}

absl::StatusOr<int> RunPredict(const Args& args, const Environment& environment) {
  WatchInterrupts();
  ONWARD_ASSIGN_OR_RETURN(const Model model, ReadModel(args.Argument("MODEL")));
  ONWARD_ASSIGN_OR_RETURN(
      const std::shared_ptr<const Dataset> data,
      OpenDataFor(model, args.String("data"), Split::kTest, {.labels_optional = true}));
  for (const std::string& note : data->notes()) std::cerr << "note: " << note << "\n";
  ONWARD_ASSIGN_OR_RETURN(const PredictOptions options, OptionsOf(args, model));
  ONWARD_ASSIGN_OR_RETURN(Graph graph, RunnableGraph(model, environment));
  ONWARD_ASSIGN_OR_RETURN(const std::unique_ptr<Predictor> predictor,
                          Predictor::Create(std::move(graph), data, options, environment));
  if (!predictor->note().empty()) std::cerr << "note: " << predictor->note() << "\n";
  std::optional<AtomicFile> file;
  if (args.Has("output")) {
    ONWARD_ASSIGN_OR_RETURN(AtomicFile created, AtomicFile::Create(args.String("output")));
    file.emplace(std::move(created));
  }
  const ResultRows rows(args, *predictor, *data, ArePictures(args.String("data")));
  int64_t count = 0;
  ONWARD_RETURN_IF_ERROR(predictor->Run(
      [&](const PredictedRow& row) -> absl::Status {
        if (args.Has("json")) std::cout << rows.Object(row) << "\n";
        if (file && count == 0) ONWARD_RETURN_IF_ERROR(file->Write(rows.Header(row.values.size())));
        ++count;
        return file ? file->Write(rows.Line(row)) : absl::OkStatus();
      },
      &Interrupted()));
  if (file) {
    ONWARD_RETURN_IF_ERROR(file->Commit());
    if (!args.Has("json")) {
      std::cout << args.String("output") << ": " << count << " predictions\n";
    }
  }
  return 0;
}

absl::Status CheckPredictFlags(const Args& args) {
  if (args.Has("output") || args.Has("json")) return absl::OkStatus();
  return absl::InvalidArgumentError("-o OUT.csv says where predictions go, or --json prints them");
}

}  // namespace

Command PredictCommand() {
  return Computing(
      {.name = "predict",
       .summary = "class names and probabilities (or values) for every row or picture",
       .arguments = {{"MODEL", "an .onnx file"}},
       .flags = {Flag::Value(
                     "data", "SPEC",
                     "raw rows or pictures, with labels or without; see `onward eval --help` "
                     "for the forms")
                     .Names(FlagNames::kData)
                     .Required(),
                 Flag::Value("output", "OUT.csv", "where the predictions go, one line for each")
                     .Short('o')
                     .Names(FlagNames::kResult),
                 Flag::Count("top", "K", "the K most probable classes", 1, kMostShown).Default("1"),
                 Flag::Switch("probabilities", "also the probability of every class"),
                 Flag::Value("train-output", "NAME",
                             "the model output to read; the first by default"),
                 Flag::Count("batch", "N",
                             "examples at a time; by default 256, fewer where they are large", 1),
                 Flag::Switch("json", "print one JSON object for each example")},
       .example = "onward predict model.onnx --data csv:rows.csv -o predictions.csv --top 3",
       .check = CheckPredictFlags},
      RunPredict);
}

}  // namespace onward
