// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/report.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status.h"
#include "trainer/report/report_chart.h"
#include "trainer/report/report_style.h"

namespace onward {
namespace {

constexpr int64_t kMostDrawnClasses = 100;
constexpr int64_t kMostListedClasses = 25;

std::string Percent(double share) {
  return std::isnan(share) ? "–" : absl::StrFormat("%.1f%%", 100 * share);
}

std::string Section(absl::string_view title, absl::string_view body) {
  return body.empty() ? "" : absl::StrCat("<section><h2>", title, "</h2>\n", body, "</section>\n");
}

std::string FiguresHtml(const std::vector<ReportFigure>& figures) {
  if (figures.empty()) return "";
  std::string out = "<div class=\"figures\">";
  for (const ReportFigure& f : figures) {
    absl::StrAppend(&out, "<div class=\"figure\"><span>", EscapeHtml(f.label), "</span><b>",
                    EscapeHtml(f.value), "</b>");
    if (!f.note.empty()) absl::StrAppend(&out, "<span>", EscapeHtml(f.note), "</span>");
    absl::StrAppend(&out, "</div>");
  }
  return out + "</div>\n";
}

std::string PairsTable(const std::vector<ReportSetting>& pairs) {
  if (pairs.empty()) return "";
  std::string out = "<div class=\"card\"><table>";
  for (const ReportSetting& p : pairs) {
    absl::StrAppend(&out, "<tr><td class=\"k\">", EscapeHtml(p.name), "</td><td>",
                    EscapeHtml(p.value), "</td></tr>");
  }
  return out + "</table></div>";
}

// The smoothed series follows about a hundredth of the run.
std::vector<ChartPoint> Smooth(const std::vector<ChartPoint>& points) {
  SmoothedMean mean(1 - 1 / std::clamp(static_cast<double>(points.size()) / 100, 3.0, 200.0));
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

bool AnyFinite(const std::vector<ChartPoint>& points) {
  return std::any_of(points.begin(), points.end(),
                     [](const ChartPoint& p) { return std::isfinite(p.y); });
}

std::string TrainingChart(Chart chart, std::vector<ChartPoint> raw, std::vector<ChartPoint> eval) {
  if (AnyFinite(raw)) {
    std::vector<ChartPoint> smooth = Smooth(raw);
    chart.lines.push_back({"each batch", "raw", std::move(raw), false, false});
    chart.lines.push_back({"training, smoothed", "train", std::move(smooth), false, true});
  }
  if (AnyFinite(eval)) chart.lines.push_back({"evaluation", "eval", std::move(eval), true, true});
  return RenderChart(chart);
}

std::string CurvesHtml(const ReportData& data) {
  const auto loss = [](const auto& r) { return r.loss; };
  const auto metric = [](const auto& r) { return r.metric; };
  std::string out =
      TrainingChart({.title = "Loss", .x_title = "step", .lines = {}, .may_be_logarithmic = true},
                    Points(data.steps, loss), Points(data.evals, loss));
  const auto rates = Points(data.steps, [](const ReportStep& r) { return r.learning_rate; });
  // The two sizes differ by one so that each drawing's ids are its own.
  std::string pair = TrainingChart({.title = data.metric_name,
                                    .x_title = "step",
                                    .lines = {},
                                    .percent = data.metric_is_share,
                                    .width = 520,
                                    .height = 260},
                                   Points(data.steps, metric), Points(data.evals, metric));
  if (AnyFinite(rates)) {
    absl::StrAppend(&pair, RenderChart({.title = "Learning rate",
                                        .x_title = "step",
                                        .lines = {{"learning rate", "rate", rates, false, true}},
                                        .from_zero = true,
                                        .width = 520,
                                        .height = 261}));
  }
  if (!pair.empty()) absl::StrAppend(&out, "<div class=\"pair\">", pair, "</div>");
  return out;
}

std::vector<std::string> ClassNames(const ReportData& data) {
  std::vector<std::string> names = data.class_names;
  names.resize(data.confusion->classes());
  for (size_t i = data.class_names.size(); i < names.size(); ++i) names[i] = absl::StrCat(i);
  return names;
}

// All classes, or the weakest where there are many.
std::string ClassTable(const ConfusionMatrix& m, const std::vector<std::string>& names) {
  std::vector<int64_t> order;
  for (int64_t c = 0; c < m.classes(); ++c) {
    if (m.actual(c) + m.predicted(c) > 0) order.push_back(c);
  }
  const size_t all = order.size();
  if (m.classes() > kMostListedClasses) {
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return m.f1(a) < m.f1(b); });
    order.resize(std::min<size_t>(order.size(), 15));
  }
  std::string out =
      "<table><tr><th>Class</th><th class=\"n\">Examples</th><th class=\"n\">Precision</th><th "
      "class=\"n\">Recall</th>"
      "<th class=\"n\">F1</th></tr>";
  for (int64_t c : order) {
    absl::StrAppend(&out, "<tr><td>", EscapeHtml(names[c]), "</td><td class=\"n\">",
                    WithCommas(m.actual(c)), "</td><td class=\"n\">", Percent(m.precision(c)),
                    "</td><td class=\"n\">", Percent(m.recall(c)), "</td><td class=\"n\">",
                    Percent(m.f1(c)), "</td></tr>");
  }
  absl::StrAppend(&out, "</table>");
  if (order.size() < all) {
    absl::StrAppend(&out, "<p class=\"note\">The ", order.size(), " weakest of ", all,
                    " classes.</p>");
  }
  return out;
}

std::string MistakesTable(const ConfusionMatrix& m, const std::vector<std::string>& names) {
  std::vector<std::tuple<int64_t, int64_t, int64_t>> mistakes;
  for (int64_t a = 0; a < m.classes(); ++a) {
    for (int64_t p = 0; p < m.classes(); ++p) {
      if (a != p && m.count(a, p) > 0) mistakes.emplace_back(-m.count(a, p), a, p);
    }
  }
  if (mistakes.empty()) return "";
  std::sort(mistakes.begin(), mistakes.end());
  mistakes.resize(std::min<size_t>(mistakes.size(), 6));
  std::string out = "<h3 style=\"margin:22px 0 6px\">Most frequent mistakes</h3><table>";
  for (const auto& [negative, a, p] : mistakes) {
    absl::StrAppend(&out, "<tr><td>", EscapeHtml(names[a]), " taken for ", EscapeHtml(names[p]),
                    "</td><td class=\"n\">", WithCommas(-negative), "</td><td class=\"n\">",
                    Percent(-static_cast<double>(negative) / static_cast<double>(m.actual(a))),
                    "</td></tr>");
  }
  return out + "</table>";
}

std::string ConfusionHtml(const ReportData& data) {
  if (!data.confusion || data.confusion->total() == 0) return "";
  const ConfusionMatrix& m = *data.confusion;
  const std::vector<std::string> names = ClassNames(data);
  const std::string tables =
      absl::StrCat("<div>", ClassTable(m, names), MistakesTable(m, names), "</div>");
  if (m.classes() > kMostDrawnClasses) {
    return absl::StrCat("<div class=\"card\">", tables, "</div>");
  }
  return absl::StrCat("<div class=\"card split\"><div>", RenderConfusion(m, names),
                      "<p class=\"note\">Colour is the share of the row: right answers in one "
                      "colour, mistakes in the "
                      "other.</p></div>",
                      tables, "</div>");
}

std::string WrongHtml(const ReportData& data) {
  std::string out;
  for (const WrongExample& w : data.wrong) {
    const auto png = EncodePng(w.picture);
    if (!png.ok()) continue;
    absl::StrAppend(&out, "<figure><img alt=\"",
                    EscapeHtml(absl::StrCat(w.actual, " taken for ", w.predicted)),
                    "\" src=\"data:image/png;base64,", absl::Base64Escape(*png), "\"><b>",
                    EscapeHtml(w.predicted), "</b>");
    if (!std::isnan(w.confidence)) absl::StrAppend(&out, " ", Percent(w.confidence));
    absl::StrAppend(&out, "<span>is ", EscapeHtml(w.actual), "</span></figure>\n");
  }
  if (out.empty()) return "";
  std::string note;
  if (data.wrong_total > static_cast<int64_t>(data.wrong.size())) {
    note = absl::StrCat("<p class=\"note\" style=\"margin-top:14px\">", data.wrong.size(), " of ",
                        WithCommas(data.wrong_total), ".</p>");
  }
  return absl::StrCat("<div class=\"card\"><div class=\"wrong\">", out, "</div>", note, "</div>");
}

std::string FilesHtml(const std::vector<ReportFile>& files) {
  if (files.empty()) return "";
  std::string out = "<div class=\"card\"><table>";
  for (const ReportFile& f : files) {
    absl::StrAppend(&out, "<tr><td class=\"k\">", EscapeHtml(f.role), "</td><td><code>",
                    EscapeHtml(f.path), "</code>");
    if (!f.sha256.empty()) {
      absl::StrAppend(&out, "<br><span class=\"hash\">sha256 ", EscapeHtml(f.sha256), "</span>");
    }
    absl::StrAppend(&out, "</td><td class=\"n\">",
                    f.bytes < 0 ? "" : absl::StrCat(WithCommas(f.bytes), " bytes"), "</td></tr>");
  }
  return out + "</table></div>";
}

std::string CommandsHtml(const std::vector<ReportCommand>& commands) {
  if (commands.empty()) return "";
  std::string out = "<div class=\"card\">";
  for (const ReportCommand& c : commands) {
    absl::StrAppend(&out, EscapeHtml(c.what), "<pre>", EscapeHtml(c.command), "</pre>");
  }
  return out + "</div>";
}

absl::StatusOr<PictureInfo> PictureShape(const Shape& shape, bool* channels_last) {
  const int rank = shape.rank() - 1;
  *channels_last = false;
  const auto small = [](int64_t c) { return c == 1 || c == 3; };
  if (rank == 3 && small(shape[1])) {
    return PictureInfo{shape[2], shape[3], static_cast<int>(shape[1])};
  }
  if (rank == 3 && small(shape[3])) {
    *channels_last = true;
    return PictureInfo{shape[1], shape[2], static_cast<int>(shape[3])};
  }
  if (rank == 2) return PictureInfo{shape[1], shape[2], 1};
  if (rank == 1) {
    const int64_t side = std::llround(std::sqrt(static_cast<double>(shape[1])));
    if (side * side == shape[1] && side >= 8) return PictureInfo{side, side, 1};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("examples of shape ", shape.ToString(), " are not pictures"));
}

}  // namespace

absl::StatusOr<Picture> PictureOf(const Tensor& batch, int64_t row) {
  const Shape& shape = batch.shape();
  if (shape.rank() < 2 || row < 0 || row >= shape[0]) {
    return absl::InvalidArgumentError(
        absl::StrCat("no example ", row, " in a batch of shape ", shape.ToString()));
  }
  Picture out;
  bool channels_last = false;
  ONWARD_ASSIGN_OR_RETURN(out.info, PictureShape(shape, &channels_last));
  const int64_t count = shape.elements(1, shape.rank()), area = out.info.height * out.info.width;
  if (count < 1 || area > (1 << 24)) {
    return absl::InvalidArgumentError("the examples are empty or too large");
  }
  const size_t item = DTypeBits(batch.dtype()) / 8;
  if (item == 0 || batch.dtype() == DType::kString) {
    return absl::InvalidArgumentError("the examples are not numbers");
  }
  const Tensor one(batch.dtype(), {count},
                   const_cast<char*>(batch.data<char>()) + row * count * item, nullptr);
  ONWARD_ASSIGN_OR_RETURN(std::vector<double> values, ToDoubles(one));
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (double& v : values) {
    if (!std::isfinite(v)) v = 0;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  if (low >= 0 && high <= 255) {
    low = 0;
    high = high <= 1 ? 1 : 255;
  }
  const double scale = high > low ? 255 / (high - low) : 0;
  out.pixels.resize(static_cast<size_t>(count));
  const int channels = out.info.channels;
  for (int64_t i = 0; i < area; ++i) {
    for (int c = 0; c < channels; ++c) {
      const double v = values[channels_last ? i * channels + c : c * area + i];
      out.pixels[i * channels + c] = static_cast<uint8_t>(std::lround((v - low) * scale));
    }
  }
  return out;
}

std::string RenderReport(const ReportData& data) {
  const std::string title = EscapeHtml(data.title.empty() ? "Training report" : data.title);
  std::string out = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; "
      "img-src data:\">\n<title>",
      title, "</title>\n<style>", kReportStyle, "</style>\n</head>\n<body>\n<main>\n<h1>", title,
      "</h1>\n");
  if (!data.subtitle.empty()) {
    absl::StrAppend(&out, "<p class=\"subtitle\">", EscapeHtml(data.subtitle), "</p>\n");
  }
  absl::StrAppend(&out, FiguresHtml(data.figures), Section("Training", CurvesHtml(data)),
                  Section("Classes", ConfusionHtml(data)),
                  Section("Wrong answers", WrongHtml(data)),
                  Section("Settings", PairsTable(data.settings)),
                  Section("Time", PairsTable(data.timing)), Section("Files", FilesHtml(data.files)),
                  Section("What to type next", CommandsHtml(data.next)));
  absl::StrAppend(&out, "<footer>Written by Onward.</footer>\n</main>\n</body>\n</html>\n");
  return out;
}

}  // namespace onward
