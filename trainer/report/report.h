// SPDX-License-Identifier: Apache-2.0
// The report of a run: one HTML page that needs no other file and no script.
// Whoever trains or evaluates fills ReportData; sections without data are left
// out. All text is escaped.
#ifndef ONWARD_TRAINER_REPORT_REPORT_H_
#define ONWARD_TRAINER_REPORT_REPORT_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/tensor/tensor.h"
#include "data/pictures/picture.h"
#include "trainer/report/metrics.h"

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
};

// "Accuracy", "98.91 %", "10,000 test images".
struct ReportFigure {
  std::string label, value, note;
};

struct ReportSetting {
  std::string name, value;
};

struct ReportFile {
  std::string role, path, sha256;
  int64_t bytes = -1;  // below 0: not shown
};

struct ReportCommand {
  std::string what, command;
};

struct WrongExample {
  Picture picture;
  std::string predicted, actual;
  double confidence = kNotMeasured;  // in the wrong answer, from 0 to 1
};

struct ReportData {
  std::string title;     // "mnist-8.onnx"
  std::string subtitle;  // "fine-tuned on mnist, 3 epochs"
  std::vector<ReportFigure> figures;
  std::vector<ReportSetting> settings;

  std::vector<ReportStep> steps;
  std::vector<ReportEval> evals;
  std::string metric_name = "Accuracy";
  bool metric_is_share = true;  // shown in percent, larger is better

  std::optional<ConfusionMatrix> confusion;
  std::vector<std::string> class_names;  // by class; numbers where it is too short

  std::vector<WrongExample> wrong;
  int64_t wrong_total = 0;

  std::vector<ReportSetting> timing;
  std::vector<ReportFile> files;
  std::vector<ReportCommand> next;
};

std::string RenderReport(const ReportData& data);

// Example `row` of a batch as something to look at: [C, H, W] or [H, W, C] with
// 1 or 3 channels, [H, W], or a flat square. Values in [0, 1] or [0, 255] keep
// their brightness, others are stretched. An error for anything else.
absl::StatusOr<Picture> PictureOf(const Tensor& batch, int64_t row);

}  // namespace onward

#endif  // ONWARD_TRAINER_REPORT_REPORT_H_
