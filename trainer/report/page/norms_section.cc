// SPDX-License-Identifier: Apache-2.0
// Lengths of weights and gradients, and where the time goes.
#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "trainer/report/page/html.h"
#include "trainer/report/page/report_sections.h"

namespace onward {
namespace {

constexpr size_t kMostOperators = 15;

// A line without axes, the largest value at the top; logarithmic.
std::string Sparkline(const std::vector<double>& values) {
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const double v : values) {
    if (!(v > 0) || !std::isfinite(v)) continue;
    low = std::min(low, std::log(v));
    high = std::max(high, std::log(v));
  }
  if (values.size() < 2 || !(low <= high)) return "";
  // What changes by less than a third is drawn flat, not as noise.
  const double span = std::max(high - low, 0.3);
  std::string path;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!(values[i] > 0) || !std::isfinite(values[i])) continue;
    const double x = 108.0 * static_cast<double>(i) / static_cast<double>(values.size() - 1);
    absl::StrAppendFormat(&path, "%s%.1f %.1f", path.empty() ? "M" : "L", x + 1,
                          20 - 18 * (std::log(values[i]) - low) / span);
  }
  return absl::StrCat("<svg class=\"spark\" viewBox=\"0 0 110 22\" aria-hidden=\"true\"><path d=\"",
                      path, "\"/></svg>");
}

}  // namespace

std::vector<ChartPoint> GradientNorms(const std::vector<ReportNorms>& norms) {
  std::vector<ChartPoint> points;
  for (const ReportNorms& moment : norms) {
    double sum = 0;
    bool any = false;
    for (const LayerNorm& layer : moment.layers) {
      if (std::isnan(layer.gradient)) continue;
      sum += layer.gradient * layer.gradient;
      any = true;
    }
    points.push_back({static_cast<double>(moment.step), any ? std::sqrt(sum) : kNotMeasured});
  }
  return points;
}

std::string NormsHtml(const ReportData& data) {
  if (data.norms.empty()) return "";
  std::map<std::string, std::vector<double>> gradients, weights;
  for (const ReportNorms& moment : data.norms) {
    for (const LayerNorm& layer : moment.layers) {
      gradients[layer.name].push_back(layer.gradient);
      weights[layer.name].push_back(layer.weight);
    }
  }
  std::vector<std::vector<std::string>> rows;
  for (const LayerNorm& layer : data.norms.back().layers) {
    rows.push_back({EscapeHtml(layer.name), WithCommas(layer.numbers), FourDigits(layer.weight),
                    Sparkline(weights[layer.name]), FourDigits(layer.gradient),
                    Sparkline(gradients[layer.name]), FourDigits(layer.gradient / layer.weight)});
  }
  std::string chart;
  if (data.norms.size() > 1) {
    chart = RenderChart({.title = "Gradient norm, all layers",
                         .x_title = "step",
                         .lines = {{"gradient", "train", GradientNorms(data.norms), true, true}},
                         .may_be_logarithmic = true,
                         .height = 220});
  }
  return absl::StrCat(chart, "<div class=\"card\">",
                      HtmlTable({{"Layer"},
                                 {"Numbers", true},
                                 {"Weight norm", true},
                                 {""},
                                 {"Gradient norm", true},
                                 {""},
                                 {"Gradient / weight", true}},
                                rows),
                      "</div>");
}

std::string OperatorsHtml(const ReportData& data) {
  double total = 0;
  for (const OperatorTime& t : data.operators) total += t.milliseconds;
  if (total <= 0) return "";
  std::vector<std::vector<std::string>> rows;
  double rest = total;
  for (size_t i = 0; i < std::min(data.operators.size(), kMostOperators); ++i) {
    const OperatorTime& t = data.operators[i];
    const double share = t.milliseconds / total;
    rest -= t.milliseconds;
    rows.push_back({EscapeHtml(t.op), WithCommas(t.calls), FourDigits(t.milliseconds),
                    PercentText(share),
                    absl::StrFormat("<span class=\"share\" style=\"width:%.1f%%\"></span>",
                                    100 * t.milliseconds / data.operators[0].milliseconds)});
  }
  if (data.operators.size() > kMostOperators) {
    rows.push_back({absl::StrCat(data.operators.size() - kMostOperators, " others"), "",
                    FourDigits(rest), PercentText(rest / total), ""});
  }
  return absl::StrCat(
      "<div class=\"card operators\">",
      HtmlTable({{"Operator"}, {"Calls a step", true}, {"ms a step", true}, {"Share", true}, {""}},
                rows),
      "</div>");
}

}  // namespace onward
