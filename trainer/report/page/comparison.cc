// SPDX-License-Identifier: Apache-2.0
// Several runs on one page.
#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "trainer/report/page/html.h"
#include "trainer/report/page/report_sections.h"

namespace onward {
namespace {

constexpr size_t kColours = 8;

using Runs = std::vector<ReportData>;

std::string StyleOf(size_t run) { return absl::StrCat("run", run % kColours); }

// A line of each run.
template <typename Get>
std::vector<ChartLine> Lines(const Runs& runs, bool dots, const Get& points) {
  std::vector<ChartLine> lines;
  for (size_t i = 0; i < runs.size(); ++i) {
    lines.push_back({runs[i].title, StyleOf(i), points(runs[i]), dots, runs.size() <= kColours});
  }
  return lines;
}

std::vector<ChartLine> EvalLines(const Runs& runs, double ReportEval::*figure) {
  return Lines(runs, true, [&](const ReportData& run) {
    std::vector<ChartPoint> points;
    for (const ReportEval& e : run.evals) {
      points.push_back({static_cast<double>(e.step), e.*figure});
    }
    return points;
  });
}

// The metric, where all runs have the same.
bool SameMetric(const Runs& runs) {
  return std::all_of(runs.begin(), runs.end(), [&](const ReportData& r) {
    return r.metric_name == runs[0].metric_name && r.metric_is_share == runs[0].metric_is_share;
  });
}

std::vector<ChartPoint> Rates(const ReportData& run) {
  std::vector<ChartPoint> points;
  for (const ReportStep& s : run.steps) {
    points.push_back({static_cast<double>(s.step), s.learning_rate});
  }
  return points;
}

std::string ChartsHtml(const Runs& runs) {
  const auto losses = [](const ReportData& r) { return SmoothedLosses(r.steps); };
  const auto gradients = [](const ReportData& r) { return GradientNorms(r.norms); };
  const std::string wide = absl::StrCat(RenderChart({.title = "Training loss, smoothed",
                                                     .x_title = "step",
                                                     .lines = Lines(runs, false, losses),
                                                     .may_be_logarithmic = true}),
                                        RenderChart({.title = "Evaluation loss",
                                                     .x_title = "step",
                                                     .lines = EvalLines(runs, &ReportEval::loss),
                                                     .may_be_logarithmic = true}));
  std::string pair;
  if (SameMetric(runs)) {
    pair = RenderChart({.title = absl::StrCat("Evaluation ", runs[0].metric_name),
                        .x_title = "step",
                        .lines = EvalLines(runs, &ReportEval::metric),
                        .percent = runs[0].metric_is_share,
                        .width = kHalfWidth,
                        .height = kHalfHeight});
  }
  absl::StrAppend(&pair,
                  RenderChart({.title = "Learning rate",
                               .x_title = "step",
                               .lines = Lines(runs, false, Rates),
                               .from_zero = true,
                               .width = kHalfWidth,
                               .height = kHalfHeight}),
                  RenderChart({.title = "Gradient norm, all layers",
                               .x_title = "step",
                               .lines = Lines(runs, true, gradients),
                               .may_be_logarithmic = true,
                               .width = kHalfWidth,
                               .height = kHalfHeight}));
  return absl::StrCat(wide,
                      pair.empty() ? "" : absl::StrCat("<div class=\"pair\">", pair, "</div>"));
}

// A row for each name that any run has, in the order of its first appearance; a column for each
// run. With `differing` only rows whose values are not all the same.
std::string SideBySide(const Runs& runs, bool differing,
                       std::vector<ReportSetting> (*pairs)(const ReportData&)) {
  std::vector<HtmlColumn> columns = {{""}};
  std::vector<std::string> names;
  std::vector<std::vector<ReportSetting>> of_runs;
  for (size_t i = 0; i < runs.size(); ++i) {
    columns.push_back(
        {absl::StrCat("<i class=\"key ", StyleOf(i), "\"></i>", EscapeHtml(runs[i].title))});
    of_runs.push_back(pairs(runs[i]));
    for (const ReportSetting& p : of_runs.back()) {
      if (std::find(names.begin(), names.end(), p.name) == names.end()) names.push_back(p.name);
    }
  }
  std::vector<std::vector<std::string>> rows;
  for (const std::string& name : names) {
    std::vector<std::string> row = {EscapeHtml(name)};
    std::set<std::string> values;
    for (const std::vector<ReportSetting>& of_run : of_runs) {
      const auto it = std::find_if(of_run.begin(), of_run.end(),
                                   [&](const ReportSetting& p) { return p.name == name; });
      row.push_back(it == of_run.end() ? "–" : EscapeHtml(it->value));
      values.insert(row.back());
    }
    if (!differing || values.size() > 1) rows.push_back(std::move(row));
  }
  if (rows.empty()) return "";
  return absl::StrCat("<div class=\"card\">", HtmlTable(columns, rows), "</div>");
}

std::vector<ReportSetting> FiguresOf(const ReportData& run) {
  std::vector<ReportSetting> pairs;
  if (!run.early.empty()) pairs.push_back({"Ended early", run.early});
  for (const ReportFigure& f : run.figures) {
    pairs.push_back({f.label, f.note.empty() ? f.value : absl::StrCat(f.value, " (", f.note, ")")});
  }
  pairs.insert(pairs.end(), run.timing.begin(), run.timing.end());
  return pairs;
}

std::vector<ReportSetting> SettingsOf(const ReportData& run) { return run.settings; }

}  // namespace

std::string RenderComparison(const Runs& runs) {
  std::string commands;
  bool running = false;
  for (const ReportData& run : runs) {
    running |= run.running;
    if (run.command.empty()) continue;
    absl::StrAppend(&commands, EscapeHtml(run.title), "<pre>", EscapeHtml(run.command), "</pre>");
  }
  if (!commands.empty()) commands = absl::StrCat("<div class=\"card\">", commands, "</div>");
  const std::string body = absl::StrCat(
      HtmlSection("Results", SideBySide(runs, false, FiguresOf)),
      HtmlSection("Curves", ChartsHtml(runs)),
      HtmlSection("Settings that differ", SideBySide(runs, true, SettingsOf)),
      HtmlSection("Commands", commands),
      HtmlSection("What the numbers mean", runs.empty() ? "" : DefinitionsHtml(runs[0])));
  return HtmlPage(absl::StrCat(runs.size(), " runs"), "", body, running ? kRefreshSeconds : 0);
}

}  // namespace onward
