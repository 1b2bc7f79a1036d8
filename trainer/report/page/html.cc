// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/page/html.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "data/sha256.h"
#include "trainer/report/page/report_script.h"
#include "trainer/report/page/report_style.h"

namespace onward {
namespace {

constexpr char kDash[] = "–";

// The page runs its own script and no other, whatever text it shows.
std::string ScriptHash() {
  return absl::StrCat("'sha256-", absl::Base64Escape(absl::HexStringToBytes(Sha256(kReportScript))),
                      "'");
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

std::string PercentText(double share) {
  return std::isnan(share) ? kDash : absl::StrFormat("%.1f%%", 100 * share);
}

std::string FourDigits(double value) {
  if (std::isnan(value)) return kDash;
  const double size = std::fabs(value);
  return size >= 1e4 && size < 1e9 ? WithCommas(std::llround(value))
                                   : absl::StrFormat("%.4g", value);
}

std::string HtmlSection(absl::string_view title, absl::string_view body) {
  return body.empty() ? "" : absl::StrCat("<section><h2>", title, "</h2>\n", body, "</section>\n");
}

std::string HtmlTable(const std::vector<HtmlColumn>& columns,
                      const std::vector<std::vector<std::string>>& rows) {
  const bool titled = std::any_of(columns.begin(), columns.end(),
                                  [](const HtmlColumn& c) { return !c.title.empty(); });
  const auto cell = [&](const char* tag, size_t column, absl::string_view text) {
    return absl::StrCat("<", tag, columns[column].number ? " class=\"n\">" : ">", text, "</", tag,
                        ">");
  };
  std::string out = "<table>";
  if (titled) {
    absl::StrAppend(&out, "<tr>");
    for (size_t i = 0; i < columns.size(); ++i) {
      absl::StrAppend(&out, cell("th", i, columns[i].title));
    }
    absl::StrAppend(&out, "</tr>");
  }
  for (const std::vector<std::string>& row : rows) {
    absl::StrAppend(&out, "<tr>");
    for (size_t i = 0; i < row.size(); ++i) absl::StrAppend(&out, cell("td", i, row[i]));
    absl::StrAppend(&out, "</tr>\n");
  }
  return out + "</table>";
}

std::string HtmlPage(absl::string_view title, absl::string_view subtitle, absl::string_view body,
                     int refresh) {
  const std::string heading = EscapeHtml(title);
  std::string out = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; img-src data:; script-src ",
      ScriptHash(), "\">\n");
  if (refresh > 0) {
    absl::StrAppend(&out, "<meta http-equiv=\"refresh\" content=\"", refresh, "\">\n");
  }
  absl::StrAppend(&out, "<title>", heading, "</title>\n<style>", kReportStyle,
                  "</style>\n</head>\n<body>\n<main>\n<h1>", heading, "</h1>\n");
  if (!subtitle.empty()) {
    absl::StrAppend(&out, "<p class=\"subtitle\">", EscapeHtml(subtitle), "</p>\n");
  }
  absl::StrAppend(&out, body, "<footer>Written by Onward.</footer>\n</main>\n<script>",
                  kReportScript, "</script>\n</body>\n</html>\n");
  return out;
}

}  // namespace onward
