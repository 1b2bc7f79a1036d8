// SPDX-License-Identifier: Apache-2.0
// Single examples and answers: calibration, predicted against actual, the most confident
// mistakes, what augmentation makes of pictures.
#include <algorithm>
#include <cmath>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "trainer/report/page/html.h"
#include "trainer/report/page/report_sections.h"

namespace onward {
namespace {

constexpr int kSide = 520;

std::string PictureHtml(const WrongExample& w) {
  const auto png = EncodePng(w.picture);
  if (!png.ok()) return "";
  return absl::StrCat("<figure><img alt=\"",
                      EscapeHtml(absl::StrCat(w.actual, " taken for ", w.predicted)),
                      "\" src=\"data:image/png;base64,", absl::Base64Escape(*png), "\"><b>",
                      EscapeHtml(w.predicted), "</b>",
                      std::isnan(w.confidence) ? "" : absl::StrCat(" ", PercentText(w.confidence)),
                      "<span>is ", EscapeHtml(w.actual), "</span></figure>\n");
}

std::string WrongPictures(const std::vector<WrongExample>& wrong) {
  std::string out;
  for (const WrongExample& w : wrong) {
    if (!w.picture.pixels.empty()) absl::StrAppend(&out, PictureHtml(w));
  }
  return out.empty() ? "" : absl::StrCat("<div class=\"wrong\">", out, "</div>");
}

std::string WrongRows(const std::vector<WrongExample>& wrong) {
  std::vector<std::vector<std::string>> rows;
  for (const WrongExample& w : wrong) {
    rows.push_back({w.example < 0 ? "" : absl::StrCat(w.example), EscapeHtml(w.predicted),
                    PercentText(w.confidence), EscapeHtml(w.actual)});
  }
  return rows.empty()
             ? ""
             : HtmlTable({{"Example", true}, {"Predicted"}, {"Confidence", true}, {"Is"}}, rows);
}

}  // namespace

std::string CalibrationHtml(const ReportData& data) {
  if (!data.calibration || data.calibration->total() == 0) return "";
  ChartLine line{"answers", "eval", {}, true, false};
  for (const Calibration::Bin& bin : data.calibration->bins()) {
    if (bin.count > 0) line.points.push_back({bin.mean_confidence(), bin.accuracy()});
  }
  const ChartLine even{"as sure as right", "even", {{0, 0}, {1, 1}}};
  return absl::StrCat("<div class=\"pair\">",
                      RenderChart({.title = "Right answers by confidence",
                                   .x_title = "confidence",
                                   .lines = {even, line},
                                   .percent = true,
                                   .whole_x = false,
                                   .square = true,
                                   .width = kSide,
                                   .height = kSide - 120}),
                      "<div class=\"card\"><p class=\"note\">Below the dashed line the model is "
                      "surer than right, above it is more often right than sure. Expected "
                      "calibration error: ",
                      PercentText(data.calibration->error()), " of ",
                      WithCommas(data.calibration->total()), " answers.</p></div></div>");
}

std::string PredictedHtml(const ReportData& data) {
  if (data.pairs.empty()) return "";
  ChartLine dots{"predicted", "eval", {}};
  dots.scattered = true;
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const NumberPair& pair : data.pairs) {
    if (!std::isfinite(pair.actual) || !std::isfinite(pair.predicted)) continue;
    dots.points.push_back({pair.actual, pair.predicted});
    low = std::min({low, pair.actual, pair.predicted});
    high = std::max({high, pair.actual, pair.predicted});
  }
  if (dots.points.empty()) return "";
  const ChartLine even{"exactly right", "even", {{low, low}, {high, high}}};
  return absl::StrCat("<div class=\"single\">",
                      RenderChart({.title = "Predicted against actual",
                                   .x_title = "actual",
                                   .lines = {even, dots},
                                   .whole_x = false,
                                   .square = true,
                                   .width = kSide + 80,
                                   .height = kSide - 60}),
                      "</div>");
}

std::string AugmentationHtml(const ReportData& data) {
  if (!data.augmentation.has_value()) return "";
  const auto png = EncodePng(*data.augmentation);
  if (!png.ok()) return "";
  return absl::StrCat(
      "<div class=\"card\"><img class=\"grid\" alt=\"Augmented examples\" "
      "src=\"data:image/png;base64,",
      absl::Base64Escape(*png),
      "\"><p class=\"note\">A row for each example: as it is, then as it is seen in each of the "
      "first epochs.</p></div>");
}

std::string WrongHtml(const ReportData& data) {
  std::string shown = WrongPictures(data.wrong);
  if (shown.empty()) shown = WrongRows(data.wrong);
  if (shown.empty()) return "";
  const std::string note = absl::StrCat(
      "<p class=\"note\">The most confident first, ", WithCommas(data.wrong.size()), " of ",
      WithCommas(std::max<int64_t>(data.wrong_total, data.wrong.size())), ".</p>");
  return absl::StrCat("<div class=\"card\">", shown, note, "</div>");
}

}  // namespace onward
