// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/report_chart.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

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

// Three digits; what is nothing beside `largest` is 0.
std::string ValueText(double v, double largest, bool percent) {
  if (percent) return absl::StrFormat("%.1f%%", 100 * v);
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
  // A run starts at its beginning unless it continues a long one.
  if (r.low > 0 && r.low < 0.2 * r.high) r.low = 0;
  if (r.low == r.high) r = {r.low - 1, r.high + 1};
  return r;
}

struct Axis {
  Range range;
  bool logarithmic = false;
  std::vector<double> ticks;
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
  Range r = Extent(chart);
  if (!(r.low <= r.high)) return {{0, 1}, false, NiceTicks(0, 1, 5)};
  if (chart.may_be_logarithmic && r.low > 0 && r.high > 20 * r.low) {
    r = {r.low * 0.9, r.high * 1.15};
    return {r, true, LogTicks(r)};
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
  return {r, false, NiceTicks(r.low, r.high, 5)};
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

std::string DrawLine(const ChartLine& line, const Frame& frame) {
  std::string path, dots;
  bool pen_down = false;
  for (const ChartPoint& p : Thin(line.points, static_cast<size_t>(frame.width / 2))) {
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

std::string DrawAxes(const Chart& chart, const Frame& frame, const std::vector<double>& x_ticks,
                     const std::vector<double>& y_ticks) {
  std::string out;
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

std::string Shorten(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  size_t cut = most - 1;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut;
  return text.substr(0, cut) + "…";
}

// One square; colour by the share of the row, mistakes in another colour.
std::string DrawCell(const ConfusionMatrix& m, int64_t actual, int64_t predicted, double x,
                     double y, double cell, bool numbers, const std::vector<std::string>& names) {
  const int64_t n = m.count(actual, predicted);
  if (n == 0) return "";
  const double share = static_cast<double>(n) / static_cast<double>(m.actual(actual));
  const bool right = actual == predicted;
  // Rare mistakes would be invisible on a linear scale.
  const double opacity = right ? 0.12 + 0.88 * share : 0.12 + 0.88 * std::sqrt(share);
  std::string out = absl::StrFormat(
      "<g><rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
      "fill-opacity=\"%.3f\"/>",
      right ? "hit" : "miss", x, y, cell - 1, cell - 1, opacity);
  if (numbers) {
    const std::string text = absl::StrCat(n);
    const double size = std::min(13.0, (cell - 4) / (0.6 * static_cast<double>(text.size())));
    absl::StrAppendFormat(&out,
                          "<text class=\"%s\" font-size=\"%.1f\" text-anchor=\"middle\" x=\"%.1f\" "
                          "y=\"%.1f\">%s</text>",
                          opacity > 0.6 ? "on" : "off", size, x + (cell - 1) / 2,
                          y + cell / 2 + size * 0.34, text);
  }
  absl::StrAppendFormat(&out, "<title>%s taken for %s: %d of %d (%.1f%%)</title></g>",
                        EscapeHtml(names[actual]), EscapeHtml(names[predicted]), n,
                        m.actual(actual), 100 * share);
  return out;
}

}  // namespace

std::string EscapeHtml(absl::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default:
        if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f) {
          out += "\xef\xbf\xbd";
        } else {
          out += c;
        }
    }
  }
  return out;
}

std::string WithCommas(int64_t value) {
  const std::string digits = absl::StrCat(value);
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > (value < 0 ? 1u : 0u) && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

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
  const Axis y_axis = YAxis(chart);
  const Frame frame{XRange(chart), y_axis.range, static_cast<double>(chart.width),
                    static_cast<double>(chart.height), y_axis.logarithmic};
  std::vector<double> x_ticks = NiceTicks(frame.x.low, frame.x.high, chart.width / 110);
  x_ticks.erase(
      std::remove_if(x_ticks.begin(), x_ticks.end(), [](double t) { return t != std::round(t); }),
      x_ticks.end());
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
  const std::string clip = absl::StrCat("clip-", chart.width, "x", chart.height);
  return absl::StrCat(
      "<figure class=\"chart", chart.width > 600 ? " wide" : "", "\"><figcaption><h3>",
      EscapeHtml(chart.title), y_axis.logarithmic ? "<small>logarithmic</small>" : "",
      "</h3><div class=\"legend\">", legend, "</div></figcaption><svg viewBox=\"0 0 ", chart.width,
      " ", chart.height, "\" role=\"img\" aria-label=\"", EscapeHtml(chart.title),
      "\"><clipPath id=\"", clip, "\"><rect x=\"", kLeft, "\" y=\"", kTop - 4, "\" width=\"",
      chart.width - kLeft - kRight + 4, "\" height=\"", chart.height - kTop - kBottom + 5,
      "\"/></clipPath>", DrawAxes(chart, frame, x_ticks, y_axis.ticks), "<g clip-path=\"url(#",
      clip, ")\">", lines, "</g>", DrawEndLabels(chart, frame), "</svg>", note, "</figure>\n");
}

std::string RenderConfusion(const ConfusionMatrix& matrix, const std::vector<std::string>& names) {
  const int64_t n = matrix.classes();
  const bool numbers = n <= 25;
  const double cell = n <= 12 ? 46 : numbers ? 30 : std::max(6.0, 600.0 / static_cast<double>(n));
  size_t longest = 1;
  for (const std::string& name : names) {
    longest = std::max(longest, std::min<size_t>(name.size(), 18));
  }
  const bool labels = cell >= 11;
  const bool slanted = longest > 4 || !numbers;
  const double text = labels ? 7.2 * static_cast<double>(longest) + 10 : 0;
  const double left = text + 22, top = (slanted ? text * 0.75 + 6 : 22) + 20;
  const double side = cell * static_cast<double>(n);
  const double right = slanted ? text * 0.6 : 8;
  std::string out = absl::StrFormat(
      "<svg class=\"confusion\" viewBox=\"0 0 %.0f %.0f\" style=\"max-width:%.0fpx\" role=\"img\" "
      "aria-label=\"Confusion matrix\"><text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" "
      "y=\"13\">predicted</text>"
      "<text class=\"tick\" text-anchor=\"middle\" transform=\"translate(13 %.1f) "
      "rotate(-90)\">actual</text>"
      "<rect class=\"field\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>",
      left + side + right, top + side + 4, left + side + right, left + side / 2, top + side / 2,
      left - 1, top - 1, side + 1, side + 1);
  for (int64_t a = 0; a < n; ++a) {
    const double at = cell * static_cast<double>(a);
    for (int64_t p = 0; p < n; ++p) {
      absl::StrAppend(&out, DrawCell(matrix, a, p, left + cell * static_cast<double>(p), top + at,
                                     cell, numbers, names));
    }
    if (!labels) continue;
    const std::string name = EscapeHtml(Shorten(names[a], 18));
    absl::StrAppendFormat(
        &out, "<text class=\"name\" text-anchor=\"end\" x=\"%.1f\" y=\"%.1f\">%s</text>", left - 7,
        top + at + cell / 2 + 4, name);
    if (slanted) {
      absl::StrAppendFormat(
          &out, "<text class=\"name\" transform=\"translate(%.1f %.1f) rotate(-45)\">%s</text>",
          left + at + cell / 2 + 3, top - 6, name);
    } else {
      absl::StrAppendFormat(
          &out, "<text class=\"name\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">%s</text>",
          left + at + cell / 2, top - 7, name);
    }
  }
  return out + "</svg>";
}

}  // namespace onward
