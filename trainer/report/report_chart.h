// SPDX-License-Identifier: Apache-2.0
// SVG for the report: line charts and the confusion matrix. Colours come from
// the page's style sheet.
#ifndef ONWARD_TRAINER_REPORT_REPORT_CHART_H_
#define ONWARD_TRAINER_REPORT_REPORT_CHART_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "trainer/report/metrics.h"

namespace onward {

// Text for HTML content and attributes.
std::string EscapeHtml(absl::string_view text);
// "1,234,567".
std::string WithCommas(int64_t value);

struct ChartPoint {
  double x = 0, y = 0;
};

struct ChartLine {
  std::string name;                // in the legend
  std::string style;               // CSS class: "raw", "train", "eval"
  std::vector<ChartPoint> points;  // x ascending; a y that is not finite makes a gap
  bool dots = false;
  bool label_end = false;  // writes the last value beside the line
};

struct Chart {
  std::string title;
  std::string x_title;
  std::vector<ChartLine> lines;
  bool percent = false;             // y from 0 to 1, shown in percent
  bool from_zero = false;           // the y axis starts at 0
  bool may_be_logarithmic = false;  // where values differ by more than 20 times
  int width = 960, height = 300;
};

// A <figure> with heading, legend and drawing.
std::string RenderChart(const Chart& chart);

// Ticks at 1, 2 or 5 times a power of ten that cover [low, high] with about
// `wanted` steps.
std::vector<double> NiceTicks(double low, double high, int wanted);

// Rows are actual classes, columns predicted ones; at most 100 classes.
std::string RenderConfusion(const ConfusionMatrix& matrix, const std::vector<std::string>& names);

}  // namespace onward

#endif  // ONWARD_TRAINER_REPORT_REPORT_CHART_H_
