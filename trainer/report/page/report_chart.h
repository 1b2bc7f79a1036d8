// SPDX-License-Identifier: Apache-2.0
// Charts of the report, as SVG. Colours come from the page's style sheet; the page's script
// (report_script.h) adds values under the pointer and zooming, from the data that a chart carries.
#ifndef ONWARD_TRAINER_REPORT_PAGE_REPORT_CHART_H_
#define ONWARD_TRAINER_REPORT_PAGE_REPORT_CHART_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace onward {

struct ChartPoint {
  double x = 0, y = 0;
};

struct ChartLine {
  std::string name;                // in the legend
  std::string style;               // CSS class: "raw", "train", "eval", "run0" to "run7"
  std::vector<ChartPoint> points;  // x ascending; a y that is not finite makes a gap
  bool dots = false;
  bool label_end = false;  // writes the last value beside the line
  bool scattered = false;  // points alone, in any order
};

// A vertical line with a word.
struct ChartMark {
  double x = 0;
  std::string text;
};

struct Chart {
  std::string title;  // no other of the page has the same
  std::string x_title;
  std::vector<ChartLine> lines;
  std::vector<ChartMark> marks = {};
  bool percent = false;             // y from 0 to 1, shown in percent
  bool from_zero = false;           // the y axis starts at 0
  bool may_be_logarithmic = false;  // where values differ by more than 20 times
  bool whole_x = true;              // x counts something
  bool square = false;              // both axes have the range of all values
  int width = 960, height = 300;
};

// A <figure> with heading, legend and drawing; "" where nothing can be drawn.
std::string RenderChart(const Chart& chart);

// Ticks at 1, 2 or 5 times a power of ten that cover [low, high] with about
// `wanted` steps.
std::vector<double> NiceTicks(double low, double high, int wanted);

}  // namespace onward

#endif  // ONWARD_TRAINER_REPORT_PAGE_REPORT_CHART_H_
