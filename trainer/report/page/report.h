// SPDX-License-Identifier: Apache-2.0
// The report of a run: one HTML page that needs no other file. Whoever trains or evaluates
// fills ReportData (run_record.h does it from the events of a run); sections without data are
// left out. All text is escaped.
#ifndef ONWARD_TRAINER_REPORT_PAGE_REPORT_H_
#define ONWARD_TRAINER_REPORT_PAGE_REPORT_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/tensor/tensor.h"
#include "data/pictures/picture.h"
#include "trainer/report/numbers/calibration.h"
#include "trainer/report/numbers/metrics.h"
#include "trainer/report/numbers/value_pairs.h"

namespace onward {

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

struct ReportStep {
  int64_t step = 0;
  double loss = kNotMeasured;
  double metric = kNotMeasured;  // of this batch
  double learning_rate = kNotMeasured;
};

struct ReportEval {
  int64_t step = 0;
  double loss = kNotMeasured;
  double metric = kNotMeasured;
  int64_t epoch = 0;             // that had just ended; 0: none
  bool baseline = false;         // before the first step
  double chosen = kNotMeasured;  // the figure by which evaluations are compared
  // The same of the weights' averages, where they are kept.
  double averages_loss = kNotMeasured, averages_metric = kNotMeasured;
};

// "Accuracy", "98.91 %", "10,000 test images".
struct ReportFigure {
  std::string label, value, note;
};

struct ReportSetting {
  std::string name, value;
};

// What the user was told of the run, in a sentence.
struct ReportNote {
  std::string text;
  bool warning = false;  // to be looked at
  int64_t step = 0;      // after which it was said
};

struct ReportFile {
  std::string role, path, sha256;
  int64_t bytes = -1;  // below 0: not shown
};

struct NextCommand {
  std::string what, command;
};

struct WrongExample {
  Picture picture;  // without pixels where the examples are no pictures
  std::string predicted, actual;
  double confidence = kNotMeasured;  // in the wrong answer, from 0 to 1
  int64_t example = -1;              // its position in the data; below 0: not known
};

// A variable that is trained: the length of its values, and of the gradient of the loss.
struct LayerNorm {
  std::string name;
  int64_t numbers = 0;
  double weight = kNotMeasured, gradient = kNotMeasured;
};

struct ReportNorms {
  int64_t step = 0;
  std::vector<LayerNorm> layers;
};

// What all nodes of one operator take in a step.
struct OperatorTime {
  std::string op;
  double milliseconds = 0;
  int64_t calls = 0;
};

struct ReportData {
  std::string title;     // "mnist-8.onnx"
  std::string subtitle;  // "fine-tuned on mnist, 3 epochs"
  bool running = false;  // the page will be written again
  std::string early;     // why the run ended before its last step; "": it did not
  std::vector<ReportFigure> figures;
  std::vector<ReportNote> notes;
  std::string command;  // that began the run
  std::vector<ReportSetting> settings;

  std::vector<ReportStep> steps;
  std::vector<ReportEval> evals;
  std::optional<size_t> best;  // of evals
  std::string metric_name = "Accuracy";
  bool metric_is_share = true;  // shown in percent, larger is better
  bool perplexity = false;      // exp(loss) means something

  std::optional<ConfusionMatrix> confusion;
  std::vector<std::string> class_names;  // by class; numbers where it is too short
  std::optional<Calibration> calibration;
  std::vector<NumberPair> pairs;

  std::vector<WrongExample> wrong;  // the most confident first
  int64_t wrong_total = 0;

  std::optional<Picture> augmentation;  // examples, and what becomes of each in the first epochs

  std::vector<ReportNorms> norms;
  std::vector<OperatorTime> operators;
  std::vector<ReportSetting> timing;
  std::vector<ReportFile> files;
  std::vector<NextCommand> next;
};

std::string RenderReport(const ReportData& data);

// Several runs beside each other: their curves in one drawing each, their figures and what
// differs of their settings in tables. Runs are told apart by their titles.
std::string RenderComparison(const std::vector<ReportData>& runs);

// Example `row` of a batch as something to look at: [C, H, W] or [H, W, C] with
// 1 or 3 channels, [H, W], or a flat square. Values in [0, 1] or [0, 255] keep
// their brightness, others are stretched. An error for anything else.
absl::StatusOr<Picture> PictureOf(const Tensor& batch, int64_t row);

}  // namespace onward

#endif  // ONWARD_TRAINER_REPORT_PAGE_REPORT_H_
