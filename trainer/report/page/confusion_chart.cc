// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/page/confusion_chart.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "trainer/report/page/html.h"

namespace onward {
namespace {

constexpr size_t kLongestName = 18;  // in bytes; longer ones are cut
constexpr double kLetter = 7.2;      // its width
constexpr double kRowsMargin = 24;   // beside the names of rows
constexpr double kBorder = 2;

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

struct MatrixLayout {
  double cell, text, top;  // of a square; that a name takes; where rows begin
  bool numbers, upright;   // counts in squares; column names stand on end
};

// The smallest and the largest square: for counts beside the tables, counts alone, no counts.
double CellOf(int64_t classes, double rows) {
  const bool beside = classes <= kMostClassesBeside, counted = classes <= kMostCountedClasses;
  const double least = beside ? 26 : counted ? 24 : 12;
  const double most = beside ? 46 : counted ? 30 : 15;
  const double width = (beside ? kBesideWidth : kAloneWidth) - rows - kBorder;
  return std::clamp(std::floor(width / static_cast<double>(classes)), least, most);
}

MatrixLayout LayoutOf(int64_t classes, const std::vector<std::string>& names) {
  size_t longest = 1;
  for (const std::string& name : names) {
    longest = std::max(longest, std::min<size_t>(name.size(), kLongestName));
  }
  MatrixLayout layout;
  layout.numbers = classes <= kMostCountedClasses;
  layout.text = kLetter * static_cast<double>(longest) + 10;
  layout.cell = CellOf(classes, layout.text + kRowsMargin);
  layout.upright = longest > (layout.numbers ? 4 : 1);
  layout.top = 20 + (layout.upright ? layout.text : 20);
  return layout;
}

// What stays in sight when the matrix is scrolled.
std::string DrawRowNames(const std::vector<std::string>& names, const MatrixLayout& layout,
                         double height) {
  const double width = layout.text + kRowsMargin;
  std::string out = absl::StrFormat(
      "<svg class=\"rows\" style=\"width:%.0fpx;height:%.0fpx\" viewBox=\"0 0 %.0f %.0f\" "
      "aria-hidden=\"true\"><text class=\"tick\" text-anchor=\"middle\" "
      "transform=\"translate(13 %.1f) rotate(-90)\">actual</text>",
      width, height, width, height, (layout.top + height) / 2);
  for (size_t a = 0; a < names.size(); ++a) {
    absl::StrAppendFormat(
        &out, "<text class=\"name\" text-anchor=\"end\" x=\"%.1f\" y=\"%.1f\">%s</text>", width - 7,
        layout.top + layout.cell * (static_cast<double>(a) + 0.5) + 4,
        EscapeHtml(Shorten(names[a], kLongestName)));
  }
  return out + "</svg>";
}

std::string DrawColumnName(const std::string& name, const MatrixLayout& layout, double middle) {
  const std::string text = EscapeHtml(Shorten(name, kLongestName));
  if (layout.upright) {
    return absl::StrFormat(
        "<text class=\"name\" transform=\"translate(%.1f %.1f) rotate(-90)\">%s</text>", middle + 4,
        layout.top - 6, text);
  }
  return absl::StrFormat(
      "<text class=\"name\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">%s</text>", middle,
      layout.top - 7, text);
}

}  // namespace

std::string RenderConfusion(const ConfusionMatrix& matrix, const std::vector<std::string>& names) {
  const int64_t n = matrix.classes();
  const MatrixLayout layout = LayoutOf(n, names);
  const double side = layout.cell * static_cast<double>(n);
  const double width = side + kBorder, height = layout.top + side + kBorder;
  std::string out = absl::StrFormat(
      "<div class=\"matrix\" tabindex=\"0\">%s<svg class=\"confusion\" "
      "style=\"width:%.0fpx;height:%.0fpx\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" "
      "aria-label=\"Confusion matrix\">"
      "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"13\">predicted</text>"
      "<rect class=\"field\" x=\"0\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>",
      DrawRowNames(names, layout, height), width, height, width, height, side / 2, layout.top - 1,
      side + 1, side + 1);
  for (int64_t a = 0; a < n; ++a) {
    const double at = layout.cell * static_cast<double>(a);
    for (int64_t p = 0; p < n; ++p) {
      absl::StrAppend(&out, DrawCell(matrix, a, p, 1 + layout.cell * static_cast<double>(p),
                                     layout.top + at, layout.cell, layout.numbers, names));
    }
    absl::StrAppend(&out, DrawColumnName(names[a], layout, 1 + at + layout.cell / 2));
  }
  return out + "</svg></div>";
}

}  // namespace onward
