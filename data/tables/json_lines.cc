// SPDX-License-Identifier: Apache-2.0
#include "data/tables/json_lines.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/json.h"
#include "core/base/status.h"

namespace onward {
namespace {

absl::Status AddCell(const Json::Member& member, TableRow* row) {
  const Json& value = member.second;
  Cell cell;
  switch (value.kind()) {
    case Json::Kind::kNull: break;
    case Json::Kind::kBool: cell.text = value.truth() ? "1" : "0"; break;
    case Json::Kind::kNumber: cell.text = row->made.emplace_back(value.text()); break;
    case Json::Kind::kString: cell = {row->made.emplace_back(value.text()), true}; break;
    case Json::Kind::kArray:
    case Json::Kind::kObject:
      return absl::InvalidArgumentError(absl::StrCat(
          "'", member.first, "' is ", value.is(Json::Kind::kArray) ? "a list" : "an object",
          ", expected a number, a string, true, false or null"));
  }
  row->keys.push_back(member.first);
  row->cells.push_back(cell);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<RowSpan>> JsonLinesFormat::Take(absl::string_view text, bool last,
                                                             TableRow* row) const {
  RowSpan span;
  while (span.end < text.size() &&
         absl::ascii_isspace(static_cast<unsigned char>(text[span.end]))) {
    span.lines_before += text[span.end] == '\n';
    ++span.end;
  }
  span.begin = span.end;
  const size_t end = text.find('\n', span.begin);
  if (span.begin == text.size() || (end == absl::string_view::npos && !last)) return std::nullopt;
  span.end = std::min(end, text.size());
  row->cells.clear();
  row->keys.clear();
  row->made.clear();
  const absl::string_view line = text.substr(span.begin, span.end - span.begin);
  if (line[0] == '[') {
    return absl::InvalidArgumentError(
        "is no JSON object but a list; expected one on every line (jq -c '.[]' LIST.json > "
        "rows.jsonl "
        "writes it so)");
  }
  auto object = ParseJson(line);
  if (!object.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(object.status().message(), "; expected one JSON object on every line"));
  }
  if (!object->is(Json::Kind::kObject)) {
    return absl::InvalidArgumentError("is no JSON object; expected one on every line");
  }
  for (const Json::Member& member : object->members()) {
    ONWARD_RETURN_IF_ERROR(AddCell(member, row));
  }
  return span;
}

}  // namespace onward
