// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "trainer/report/page/confusion_chart.h"
#include "trainer/report/page/html.h"
#include "trainer/report/page/report_sections.h"

namespace onward {
namespace {

constexpr size_t kMostListedClasses = 25, kWeakestClasses = 15, kFrequentMistakes = 6;

std::vector<std::string> ClassNames(const ReportData& data) {
  std::vector<std::string> names = data.class_names;
  names.resize(data.confusion->classes());
  for (size_t i = data.class_names.size(); i < names.size(); ++i) names[i] = absl::StrCat(i);
  return names;
}

std::string ClassTable(const ConfusionMatrix& m, const std::vector<std::string>& names,
                       const std::vector<int64_t>& classes) {
  std::vector<std::vector<std::string>> rows;
  for (const int64_t c : classes) {
    rows.push_back({EscapeHtml(names[c]), WithCommas(m.actual(c)), PercentText(m.precision(c)),
                    PercentText(m.recall(c)), PercentText(m.f1(c))});
  }
  return HtmlTable(
      {{"Class"}, {"Examples", true}, {"Precision", true}, {"Recall", true}, {"F1", true}}, rows);
}

// Where there are many classes the weakest stand first, and the rest is folded away.
std::string ClassTables(const ConfusionMatrix& m, const std::vector<std::string>& names) {
  std::vector<int64_t> order;
  for (int64_t c = 0; c < m.classes(); ++c) {
    if (m.actual(c) + m.predicted(c) > 0) order.push_back(c);
  }
  const std::string mean =
      absl::StrCat("<p class=\"note\">Mean F1 of the classes: ", PercentText(m.macro_f1()), "</p>");
  if (order.size() <= kMostListedClasses) return ClassTable(m, names, order) + mean;
  std::vector<int64_t> weakest = order;
  std::stable_sort(weakest.begin(), weakest.end(),
                   [&](int64_t a, int64_t b) { return m.f1(a) < m.f1(b); });
  weakest.resize(kWeakestClasses);
  return absl::StrCat(ClassTable(m, names, weakest), "<p class=\"note\">The ", kWeakestClasses,
                      " weakest of ", order.size(), " classes.</p>", mean, "<details><summary>All ",
                      order.size(), " classes</summary>", ClassTable(m, names, order),
                      "</details>");
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
  mistakes.resize(std::min(mistakes.size(), kFrequentMistakes));
  std::vector<std::vector<std::string>> rows;
  for (const auto& [negative, a, p] : mistakes) {
    rows.push_back(
        {absl::StrCat(EscapeHtml(names[a]), " taken for ", EscapeHtml(names[p])),
         WithCommas(-negative),
         PercentText(-static_cast<double>(negative) / static_cast<double>(m.actual(a)))});
  }
  return absl::StrCat("<h3 class=\"below\">Most frequent mistakes</h3>",
                      HtmlTable({{""}, {"", true}, {"", true}}, rows));
}

}  // namespace

std::string ClassesHtml(const ReportData& data) {
  if (!data.confusion || data.confusion->total() == 0) return "";
  const ConfusionMatrix& m = *data.confusion;
  const std::vector<std::string> names = ClassNames(data);
  const std::string tables =
      absl::StrCat("<div>", ClassTables(m, names), MistakesTable(m, names), "</div>");
  if (m.classes() > kMostDrawnClasses) {
    return absl::StrCat("<div class=\"card\">", tables, "</div>");
  }
  const std::string drawing = absl::StrCat(
      "<div class=\"fits\">", RenderConfusion(m, names),
      "<p class=\"note\">Colour is the share of the row: right answers in one colour, mistakes in "
      "the other.</p></div>");
  if (m.classes() > kMostClassesBeside) {
    return absl::StrCat("<div class=\"card\">", drawing, "</div><div class=\"card\">", tables,
                        "</div>");
  }
  return absl::StrCat("<div class=\"card split\">", drawing, tables, "</div>");
}

}  // namespace onward
