// SPDX-License-Identifier: Apache-2.0
// Pieces of a page. What comes from users and files is escaped here.
#ifndef ONWARD_TRAINER_REPORT_PAGE_HTML_H_
#define ONWARD_TRAINER_REPORT_PAGE_HTML_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace onward {

// Text for HTML content and attributes.
std::string EscapeHtml(absl::string_view text);

// "1,234,567".
std::string WithCommas(int64_t value);
// "97.1%"; a dash for what is not known.
std::string PercentText(double share);
// Four digits: "0.1234", "1.234e-07"; a dash for what is not known.
std::string FourDigits(double value);

// A heading and what is below it; "" where that is nothing.
std::string HtmlSection(absl::string_view title, absl::string_view body);

struct HtmlColumn {
  std::string title;
  bool number = false;  // aligned to the right
};
// Cells are HTML already. A table without titles has no head.
std::string HtmlTable(const std::vector<HtmlColumn>& columns,
                      const std::vector<std::vector<std::string>>& rows);

// A whole page with the report's style and script. While `refresh` is above 0 browsers load it
// again after so many seconds.
std::string HtmlPage(absl::string_view title, absl::string_view subtitle, absl::string_view body,
                     int refresh);

}  // namespace onward

#endif  // ONWARD_TRAINER_REPORT_PAGE_HTML_H_
