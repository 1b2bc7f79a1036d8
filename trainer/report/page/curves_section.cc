// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "trainer/report/page/report_sections.h"

namespace onward {
namespace {

std::vector<ChartPoint> Smooth(const std::vector<ChartPoint>& points) {
  SmoothedMean mean(kStepDecay);
  std::vector<ChartPoint> out;
  for (const ChartPoint& p : points) {
    mean.Add(p.y);
    out.push_back({p.x, mean.mean()});
  }
  return out;
}

template <typename Record, typename Get>
std::vector<ChartPoint> Points(const std::vector<Record>& records, const Get& get) {
  std::vector<ChartPoint> out;
  for (const Record& r : records) out.push_back({static_cast<double>(r.step), get(r)});
  return out;
}

double LossOf(const ReportStep& s) { return s.loss; }

bool AnyFinite(const std::vector<ChartPoint>& points) {
  return std::any_of(points.begin(), points.end(),
                     [](const ChartPoint& p) { return std::isfinite(p.y); });
}

std::string TrainingChart(Chart chart, const ReportData& data, std::vector<ChartPoint> raw,
                          std::vector<ChartPoint> eval, std::vector<ChartPoint> averages) {
  if (AnyFinite(raw)) {
    std::vector<ChartPoint> smooth = Smooth(raw);
    chart.lines.push_back({"each batch", "raw", std::move(raw)});
    chart.lines.push_back({"training, smoothed", "train", std::move(smooth), false, true});
  }
  if (AnyFinite(eval)) {
    if (data.best.has_value() && eval.size() > 2) {
      chart.marks.push_back({eval[*data.best].x, "best"});
    }
    chart.lines.push_back({"evaluation", "eval", std::move(eval), true, true});
  }
  // Some evaluations have none: that before training, those of a run that kept none.
  std::erase_if(averages, [](const ChartPoint& p) { return std::isnan(p.y); });
  if (AnyFinite(averages)) {
    chart.lines.push_back({"of the averages", "rate", std::move(averages), true, true});
  }
  return RenderChart(chart);
}

}  // namespace

std::vector<ChartPoint> SmoothedLosses(const std::vector<ReportStep>& steps) {
  return Smooth(Points(steps, LossOf));
}

std::string CurvesHtml(const ReportData& data) {
  const auto metric = [](const auto& r) { return r.metric; };
  const auto averaged = [](const ReportEval& e) { return e.averages_metric; };
  std::string out = TrainingChart(
      {.title = "Loss", .x_title = "step", .lines = {}, .may_be_logarithmic = true}, data,
      Points(data.steps, LossOf), Points(data.evals, [](const ReportEval& e) { return e.loss; }),
      Points(data.evals, [](const ReportEval& e) { return e.averages_loss; }));
  std::string pair = TrainingChart({.title = data.metric_name,
                                    .x_title = "step",
                                    .lines = {},
                                    .percent = data.metric_is_share,
                                    .width = kHalfWidth,
                                    .height = kHalfHeight},
                                   data, Points(data.steps, metric), Points(data.evals, metric),
                                   Points(data.evals, averaged));
  const auto rates = Points(data.steps, [](const ReportStep& r) { return r.learning_rate; });
  if (AnyFinite(rates)) {
    absl::StrAppend(&pair, RenderChart({.title = "Learning rate",
                                        .x_title = "step",
                                        .lines = {{"learning rate", "rate", rates, false, true}},
                                        .from_zero = true,
                                        .width = kHalfWidth,
                                        .height = kHalfHeight}));
  }
  const auto perplexity = Points(data.evals, [](const ReportEval& e) { return std::exp(e.loss); });
  if (data.perplexity && AnyFinite(perplexity)) {
    absl::StrAppend(&pair, RenderChart({.title = "Perplexity",
                                        .x_title = "step",
                                        .lines = {{"evaluation", "eval", perplexity, true, true}},
                                        .may_be_logarithmic = true,
                                        .width = kHalfWidth,
                                        .height = kHalfHeight}));
  }
  if (!pair.empty()) absl::StrAppend(&out, "<div class=\"pair\">", pair, "</div>");
  return out;
}

}  // namespace onward
