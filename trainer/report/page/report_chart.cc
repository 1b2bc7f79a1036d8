// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/page/report_chart.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "trainer/report/log/jsonl.h"
#include "trainer/report/page/html.h"

namespace onward {
namespace {

constexpr int kLeft = 62, kRight = 64, kTop = 12, kBottom = 44;

struct Range {
  double low = 0, high = 1;
};

// Where data values lie in the drawing.
struct Frame {
  Range x, y;
  double width, height;
  bool logarithmic = false;
  double X(double v) const {
    return kLeft + (v - x.low) / (x.high - x.low) * (width - kLeft - kRight);
  }
  double Y(double v) const {
    const double part = logarithmic
                            ? std::log(std::max(v, 1e-300) / y.low) / std::log(y.high / y.low)
                            : (v - y.low) / (y.high - y.low);
    return height - kBottom - part * (height - kTop - kBottom);
  }
};

std::string Number(double v) { return absl::StrFormat("%.1f", v); }

// To six digits, which is more than a drawing shows; whole numbers stay as they are.
double Rounded(double v) {
  if (v == std::round(v) || !std::isfinite(v)) return v;
  const double unit = std::pow(10, 5 - std::floor(std::log10(std::fabs(v))));
  return std::isfinite(unit) ? std::round(v * unit) / unit : v;
}

int Decimals(double step) {
  return std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 9);
}

// `step` is the distance between ticks: it says how many digits matter.
std::string TickText(double v, double step, bool percent) {
  if (percent) return absl::StrFormat("%.*f%%", Decimals(100 * step), 100 * v);
  const double size = std::max(std::fabs(v), step);
  if (v == 0) return "0";
  if (size >= 1e7 || step < 1e-4) return absl::StrFormat("%.3g", v);
  if (step >= 1 && v == std::floor(v)) return WithCommas(static_cast<int64_t>(v));
  return absl::StrFormat("%.*f", Decimals(step), v);
}

// Three digits, whole numbers where they are large; what is nothing beside `largest` is 0.
std::string ValueText(double v, double largest, bool percent) {
  if (percent) return absl::StrFormat("%.1f%%", 100 * v);
  if (std::fabs(v) >= 1e3 && std::fabs(v) < 1e6) return WithCommas(std::llround(v));
  return std::fabs(v) < 1e-6 * largest ? "0" : absl::StrFormat("%.3g", v);
}

Range XRange(const Chart& chart) {
  Range r{HUGE_VAL, -HUGE_VAL};
  for (const ChartLine& line : chart.lines) {
    for (const ChartPoint& p : line.points) {
      r.low = std::min(r.low, p.x);
      r.high = std::max(r.high, p.x);
    }
  }
  if (!(r.low <= r.high)) return {0, 1};
  if (!chart.whole_x) return r.low == r.high ? Range{r.low - 1, r.high + 1} : r;
  // A run starts at its beginning unless it continues a long one.
  if (r.low > 0 && r.low < 0.2 * r.high) r.low = 0;
  if (r.low == r.high) r = {r.low - 1, r.high + 1};
  return r;
}

struct Axis {
  Range range;
  bool logarithmic = false;
};

// What the y axis must show. Single batches have rare spikes, and the first
// steps are far from the rest: the outermost 1% of the raw series and (for
// shares) the lowest 5% of any may leave the drawing.
Range Extent(const Chart& chart) {
  Range r{HUGE_VAL, -HUGE_VAL};
  for (const ChartLine& line : chart.lines) {
    std::vector<double> values;
    for (const ChartPoint& p : line.points) {
      if (std::isfinite(p.y)) values.push_back(p.y);
    }
    if (values.empty()) continue;
    std::sort(values.begin(), values.end());
    const size_t last = values.size() - 1;
    const bool raw = line.style == "raw";
    r.low = std::min(r.low, values[chart.percent ? last / 20 : raw ? last / 100 : 0]);
    r.high = std::max(r.high, values[raw ? last - last / 100 : last]);
  }
  return r;
}

// Of all values on both axes, with a margin.
Range SquareRange(const Chart& chart) {
  Range r = XRange(chart);
  for (const ChartLine& line : chart.lines) {
    for (const ChartPoint& p : line.points) {
      if (!std::isfinite(p.y)) continue;
      r.low = std::min(r.low, p.y);
      r.high = std::max(r.high, p.y);
    }
  }
  const double pad = 0.03 * (r.high - r.low);
  return {r.low - pad, r.high + pad};
}

// 1, 2, 5, 10, ... or powers of ten alone where there are many.
std::vector<double> LogTicks(const Range& r) {
  std::vector<double> ticks;
  const bool few = r.high / r.low < 2000;
  for (double power = std::pow(10, std::floor(std::log10(r.low))); power <= r.high; power *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double t = factor * power;
      if (t >= r.low && t <= r.high && (few || factor == 1)) ticks.push_back(t);
    }
  }
  return ticks;
}

Axis YAxis(const Chart& chart) {
  if (chart.square) return {SquareRange(chart), false};
  Range r = Extent(chart);
  if (!(r.low <= r.high)) return {{0, 1}, false};
  if (chart.may_be_logarithmic && r.low > 0 && r.high > 20 * r.low) {
    r = {r.low * 0.9, r.high * 1.15};
    return {r, true};
  }
  if (chart.from_zero || (!chart.percent && r.low >= 0 && r.low < 0.5 * r.high)) r.low = 0;
  if (r.high - r.low <= 1e-12 * std::fabs(r.high)) {
    const double pad = r.high == 0 ? 1 : std::fabs(r.high) * 0.1;
    r = {r.low - pad, r.high + pad};
  } else {
    const double pad = 0.05 * (r.high - r.low);
    r = {r.low == 0 ? 0 : r.low - pad, r.high + pad};
  }
  if (chart.percent) r = {std::clamp(r.low, 0.0, 0.99), std::min(1.0, r.high)};
  return {r, false};
}

// Keeps the extremes of each stretch of points, so that spikes stay visible.
std::vector<ChartPoint> Thin(const std::vector<ChartPoint>& points, size_t stretches) {
  if (points.size() <= 2 * stretches) return points;
  std::vector<ChartPoint> out;
  for (size_t s = 0; s < stretches; ++s) {
    const size_t begin = points.size() * s / stretches, end = points.size() * (s + 1) / stretches;
    size_t low = begin, high = begin;
    for (size_t i = begin; i < end; ++i) {
      if (points[i].y < points[low].y || !std::isfinite(points[low].y)) low = i;
      if (points[i].y > points[high].y || !std::isfinite(points[high].y)) high = i;
    }
    out.push_back(points[std::min(low, high)]);
    if (low != high) out.push_back(points[std::max(low, high)]);
  }
  out.push_back(points.back());
  return out;
}

std::vector<ChartPoint> Drawn(const ChartLine& line, const Frame& frame) {
  return line.scattered ? line.points : Thin(line.points, static_cast<size_t>(frame.width / 2));
}

// Points as strokes of no length, whose round ends show.
std::string DrawPoints(const ChartLine& line, const Frame& frame) {
  std::string path;
  for (const ChartPoint& p : line.points) {
    if (!std::isfinite(p.y)) continue;
    absl::StrAppend(&path, "M", Number(frame.X(p.x)), " ", Number(frame.Y(p.y)), "h0");
  }
  return path.empty() ? ""
                      : absl::StrCat("<path class=\"points ", line.style, "\" d=\"", path, "\"/>");
}

std::string DrawLine(const ChartLine& line, const Frame& frame) {
  if (line.scattered) return DrawPoints(line, frame);
  std::string path, dots;
  bool pen_down = false;
  for (const ChartPoint& p : Drawn(line, frame)) {
    if (!std::isfinite(p.y)) {
      pen_down = false;
      continue;
    }
    absl::StrAppend(&path, pen_down ? "L" : "M", Number(frame.X(p.x)), " ", Number(frame.Y(p.y)));
    pen_down = true;
    if (line.dots && line.points.size() <= 60) {
      absl::StrAppend(&dots, "<circle class=\"dot ", line.style, "\" cx=\"", Number(frame.X(p.x)),
                      "\" cy=\"", Number(frame.Y(p.y)), "\" r=\"3\"/>");
    }
  }
  if (path.empty()) return "";
  return absl::StrCat("<path class=\"line ", line.style, "\" d=\"", path, "\"/>", dots);
}

std::vector<double> XTicks(const Chart& chart, const Frame& frame) {
  std::vector<double> ticks = NiceTicks(frame.x.low, frame.x.high, chart.width / 110);
  if (chart.whole_x) std::erase_if(ticks, [](double t) { return t != std::round(t); });
  return ticks;
}

std::string DrawAxes(const Chart& chart, const Frame& frame) {
  std::string out;
  const std::vector<double> x_ticks = XTicks(chart, frame);
  const std::vector<double> y_ticks =
      frame.logarithmic ? LogTicks(frame.y) : NiceTicks(frame.y.low, frame.y.high, 5);
  const double right = frame.width - kRight, bottom = frame.height - kBottom;
  const double y_step = y_ticks.size() > 1 ? y_ticks[1] - y_ticks[0] : 1;
  const double x_step = x_ticks.size() > 1 ? x_ticks[1] - x_ticks[0] : 1;
  for (double t : y_ticks) {
    const std::string y = Number(frame.Y(t));
    absl::StrAppend(
        &out, "<line class=\"grid\" x1=\"", kLeft, "\" x2=\"", Number(right), "\" y1=\"", y,
        "\" y2=\"", y, "\"/><text class=\"tick\" text-anchor=\"end\" x=\"", kLeft - 8, "\" y=\"",
        Number(frame.Y(t) + 4), "\">",
        frame.logarithmic ? absl::StrFormat("%g", t) : TickText(t, y_step, chart.percent),
        "</text>");
  }
  for (double t : x_ticks) {
    const std::string x = Number(frame.X(t));
    absl::StrAppend(&out, "<line class=\"axis\" x1=\"", x, "\" x2=\"", x, "\" y1=\"",
                    Number(bottom), "\" y2=\"", Number(bottom + 4),
                    "\"/><text class=\"tick\" text-anchor=\"middle\" x=\"", x, "\" y=\"",
                    Number(bottom + 18), "\">", TickText(t, x_step, false), "</text>");
  }
  absl::StrAppend(&out, "<line class=\"axis\" x1=\"", kLeft, "\" x2=\"", Number(right), "\" y1=\"",
                  Number(bottom), "\" y2=\"", Number(bottom),
                  "\"/><text class=\"tick\" text-anchor=\"middle\" x=\"",
                  Number((kLeft + right) / 2), "\" y=\"", Number(frame.height - 6), "\">",
                  EscapeHtml(chart.x_title), "</text>");
  return out;
}

std::string DrawMarks(const Chart& chart, const Frame& frame) {
  std::string out;
  for (const ChartMark& mark : chart.marks) {
    const std::string x = Number(frame.X(mark.x));
    const bool left = frame.X(mark.x) > frame.width * 0.7;
    absl::StrAppend(&out, "<line class=\"mark\" x1=\"", x, "\" x2=\"", x, "\" y1=\"", kTop,
                    "\" y2=\"", Number(frame.height - kBottom), "\"/><text class=\"tick\" ",
                    left ? "text-anchor=\"end\" " : "", "x=\"",
                    Number(frame.X(mark.x) + (left ? -5 : 5)), "\" y=\"", kTop + 10, "\">",
                    EscapeHtml(mark.text), "</text>");
  }
  return out;
}

// Last values beside the lines, pushed apart where they would overlap.
std::string DrawEndLabels(const Chart& chart, const Frame& frame) {
  struct Label {
    double y;
    std::string style, text;
  };
  std::vector<Label> labels;
  for (const ChartLine& line : chart.lines) {
    if (!line.label_end) continue;
    const auto last = std::find_if(line.points.rbegin(), line.points.rend(),
                                   [](const ChartPoint& p) { return std::isfinite(p.y); });
    if (last == line.points.rend()) continue;
    labels.push_back(
        {frame.Y(last->y), line.style, ValueText(last->y, frame.y.high, chart.percent)});
  }
  std::sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) { return a.y < b.y; });
  constexpr double kApart = 15;
  for (size_t i = 1; i < labels.size(); ++i) {
    labels[i].y = std::max(labels[i].y, labels[i - 1].y + kApart);
  }
  double floor = frame.height - kBottom;
  for (size_t i = labels.size(); i-- > 0; floor -= kApart) {
    labels[i].y = std::min(labels[i].y, floor);
  }
  std::string out;
  for (const Label& l : labels) {
    absl::StrAppend(&out, "<text class=\"end ", l.style, "\" x=\"",
                    Number(frame.width - kRight + 8), "\" y=\"", Number(l.y + 4), "\">", l.text,
                    "</text>");
  }
  return out;
}

Frame FrameOf(const Chart& chart) {
  const Axis y = YAxis(chart);
  return {chart.square ? y.range : XRange(chart), y.range, static_cast<double>(chart.width),
          static_cast<double>(chart.height), y.logarithmic};
}

// Titles differ, so what is left of them and how long they are do.
std::string ClipId(const std::string& title) {
  std::string id = absl::StrCat("clip-", title.size(), "-");
  for (const char c : title) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c))) id += c;
  }
  return id;
}

// What the page's script draws anew.
std::string ChartJson(const Chart& chart, const Frame& frame) {
  JsonWriter w;
  w.BeginObject().Field("width", chart.width).Field("height", chart.height);
  w.Field("left", kLeft).Field("right", kRight).Field("top", kTop).Field("bottom", kBottom);
  w.Field("x_title", chart.x_title).Field("whole_x", chart.whole_x);
  w.Field("percent", chart.percent);
  w.Field("logarithmic", frame.logarithmic);
  w.Key("xs").Values(std::vector<double>{frame.x.low, frame.x.high});
  w.Key("ys").Values(std::vector<double>{frame.y.low, frame.y.high});
  w.Key("marks").BeginArray();
  for (const ChartMark& mark : chart.marks)
    w.BeginArray().Value(mark.x).Value(mark.text).EndArray();
  w.EndArray().Key("lines").BeginArray();
  for (const ChartLine& line : chart.lines) {
    w.BeginObject().Field("name", line.name).Field("style", line.style).Field("dots", line.dots);
    w.Field("scattered", line.scattered).Key("points").BeginArray();
    for (const ChartPoint& p : Drawn(line, frame)) {
      w.BeginArray().Value(Rounded(p.x)).Value(Rounded(p.y)).EndArray();
    }
    w.EndArray().EndObject();
  }
  return w.EndArray().EndObject().text();
}

}  // namespace

std::vector<double> NiceTicks(double low, double high, int wanted) {
  if (!(high > low) || !std::isfinite(high - low) || wanted < 1) return {low};
  const double rough = (high - low) / wanted;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * 0.99) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> ticks;
  for (double k = std::ceil(low / step - 1e-9);
       k * step <= high + 1e-9 * step && ticks.size() < 100; ++k) {
    ticks.push_back(k == 0 ? 0 : k * step);
  }
  return ticks;
}

std::string RenderChart(const Chart& chart) {
  const Frame frame = FrameOf(chart);
  std::string legend, lines;
  int64_t left_out = 0;
  for (const ChartLine& line : chart.lines) {
    const std::string drawn = DrawLine(line, frame);
    if (drawn.empty()) continue;
    absl::StrAppend(&lines, drawn);
    absl::StrAppend(&legend, "<span><i class=\"key ", line.style, "\"></i>", EscapeHtml(line.name),
                    "</span>");
    if (line.style != "raw" && line.style != "rate") continue;
    left_out += std::count_if(line.points.begin(), line.points.end(),
                              [](const ChartPoint& p) { return !std::isfinite(p.y); });
  }
  if (lines.empty()) return "";
  std::string note;
  if (left_out > 0) {
    note = absl::StrCat("<p class=\"note\">", left_out, left_out == 1 ? " value is" : " values are",
                        " not finite and left out.</p>");
  }
  const std::string clip = ClipId(chart.title);
  return absl::StrCat(
      "<figure class=\"chart", chart.width > 600 ? " wide" : "", "\" data-chart=\"",
      EscapeHtml(ChartJson(chart, frame)), "\"><figcaption><h3>", EscapeHtml(chart.title),
      frame.logarithmic ? "<small>logarithmic</small>" : "", "</h3><div class=\"legend\">", legend,
      "</div></figcaption><svg viewBox=\"0 0 ", chart.width, " ", chart.height,
      "\" role=\"img\" aria-label=\"", EscapeHtml(chart.title), "\"><clipPath id=\"", clip,
      "\"><rect x=\"", kLeft, "\" y=\"", kTop - 4, "\" width=\"", chart.width - kLeft - kRight + 4,
      "\" height=\"", chart.height - kTop - kBottom + 5, "\"/></clipPath><g class=\"axes\">",
      DrawAxes(chart, frame), "</g><g class=\"lines\" ", "clip-path=\"url(#", clip, ")\">",
      DrawMarks(chart, frame), lines, "</g><g class=\"ends\">", DrawEndLabels(chart, frame),
      "</g></svg>", note, "</figure>\n");
}

}  // namespace onward
