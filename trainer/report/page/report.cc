// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/page/report.h"

#include "absl/strings/str_cat.h"
#include "trainer/report/page/html.h"
#include "trainer/report/page/report_sections.h"

namespace onward {
namespace {

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

std::string CommandsHtml(const std::vector<NextCommand>& commands) {
  if (commands.empty()) return "";
  std::string out = "<div class=\"card\">";
  for (const NextCommand& c : commands) {
    absl::StrAppend(&out, EscapeHtml(c.what), "<pre>", EscapeHtml(c.command), "</pre>");
  }
  return out + "</div>";
}

}  // namespace

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

std::string PairsHtml(const std::vector<ReportSetting>& pairs) {
  if (pairs.empty()) return "";
  std::string out = "<div class=\"card\"><table>";
  for (const ReportSetting& p : pairs) {
    absl::StrAppend(&out, "<tr><td class=\"k\">", EscapeHtml(p.name), "</td><td>",
                    EscapeHtml(p.value), "</td></tr>");
  }
  return out + "</table></div>";
}

std::string CommandHtml(const std::string& command) {
  return command.empty() ? ""
                         : absl::StrCat("<div class=\"card\"><pre class=\"alone\">",
                                        EscapeHtml(command), "</pre></div>");
}

std::string NotesHtml(const std::vector<ReportNote>& notes, bool warnings) {
  std::string items;
  for (const ReportNote& note : notes) {
    if (note.warning == warnings) absl::StrAppend(&items, "<li>", EscapeHtml(note.text), "</li>\n");
  }
  if (items.empty()) return "";
  return absl::StrCat("<div class=\"card", warnings ? " warned" : "", "\"><ul>", items,
                      "</ul></div>");
}

std::string RenderReport(const ReportData& data) {
  const std::string body = absl::StrCat(
      data.early.empty() ? ""
                         : absl::StrCat("<p class=\"early\">", EscapeHtml(data.early), "</p>\n"),
      FiguresHtml(data.figures), HtmlSection("Warnings", NotesHtml(data.notes, true)),
      HtmlSection("Training", CurvesHtml(data)), HtmlSection("Classes", ClassesHtml(data)),
      HtmlSection("Calibration", CalibrationHtml(data)),
      HtmlSection("Predictions", PredictedHtml(data)),
      HtmlSection("Wrong answers", WrongHtml(data)),
      HtmlSection("Augmentation", AugmentationHtml(data)), HtmlSection("Layers", NormsHtml(data)),
      HtmlSection("Command", CommandHtml(data.command)),
      HtmlSection("Settings", PairsHtml(data.settings)),
      HtmlSection("Notes", NotesHtml(data.notes, false)),
      HtmlSection("Time and memory", absl::StrCat(PairsHtml(data.timing), OperatorsHtml(data))),
      HtmlSection("Files", FilesHtml(data.files)),
      HtmlSection("What to type next", CommandsHtml(data.next)),
      HtmlSection("What the numbers mean", DefinitionsHtml(data)));
  return HtmlPage(data.title.empty() ? "Training report" : data.title, data.subtitle, body,
                  data.running ? kRefreshSeconds : 0);
}

}  // namespace onward
