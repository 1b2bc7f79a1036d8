// SPDX-License-Identifier: Apache-2.0
#include "cli/toml.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status.h"

namespace onward {
namespace {

constexpr int kDeepest = 8;  // lists in lists

bool IsBare(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
}

// [+-]?DIGITS[.DIGITS][e[+-]DIGITS], '_' between digits; no zero in front of other digits.
bool IsNumber(absl::string_view text) {
  size_t at = 0;
  const auto sign = [&] {
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
  };
  const auto digits = [&] {
    const size_t begin = at;
    while (at < text.size() && (absl::ascii_isdigit(static_cast<unsigned char>(text[at])) ||
                                (text[at] == '_' && at > begin && at + 1 < text.size() &&
                                 absl::ascii_isdigit(static_cast<unsigned char>(text[at + 1])) &&
                                 text[at - 1] != '_'))) {
      ++at;
    }
    return at - begin;
  };
  sign();
  const size_t whole = at, count = digits();
  if (count == 0 || (count > 1 && text[whole] == '0')) return false;
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (digits() == 0) return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    sign();
    if (digits() == 0) return false;
  }
  return at == text.size();
}

void AppendUtf8(uint32_t c, std::string* out) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((c >> shift) & 0x3f)); };
  if (c < 0x80) {
    *out += static_cast<char>(c);
  } else if (c < 0x800) {
    *out += {static_cast<char>(0xc0 | (c >> 6)), tail(0)};
  } else if (c < 0x10000) {
    *out += {static_cast<char>(0xe0 | (c >> 12)), tail(6), tail(0)};
  } else {
    *out += {static_cast<char>(0xf0 | (c >> 18)), tail(12), tail(6), tail(0)};
  }
}

class TomlReader {
 public:
  explicit TomlReader(absl::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<TomlEntry>> Read() {
    while (SkipToContent(/*across_lines=*/true)) {
      ONWARD_RETURN_IF_ERROR(text_[0] == '[' ? Table() : Entry());
      if (SkipToContent(/*across_lines=*/false)) {
        return Wrong(absl::StrCat("expected the end of the line, got '", Glance(), "'"));
      }
    }
    return std::move(entries_);
  }

 private:
  absl::Status Wrong(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat("line ", line_, ": ", what));
  }
  std::string Glance() const {
    return std::string(text_.substr(0, std::min(text_.find('\n'), size_t{20})));
  }
  void Take(size_t count) {
    line_ += static_cast<int>(std::count(text_.begin(), text_.begin() + count, '\n'));
    text_.remove_prefix(count);
  }

  // Past spaces and comments; whether something is there, on this line or on any.
  bool SkipToContent(bool across_lines) {
    while (!text_.empty()) {
      const char c = text_[0];
      if (c == ' ' || c == '\t' || (c == '\r' && absl::StartsWith(text_, "\r\n"))) {
        Take(1);
      } else if (c == '\n') {
        if (!across_lines) return false;
        Take(1);
      } else if (c == '#') {
        Take(std::min(text_.find('\n'), text_.size()));
      } else {
        return true;
      }
    }
    return false;
  }

  absl::StatusOr<std::string> Key() {
    if (!text_.empty() && (text_[0] == '"' || text_[0] == '\'')) return String();
    size_t length = 0;
    while (length < text_.size() && IsBare(text_[length])) ++length;
    if (length == 0) return Wrong(absl::StrCat("expected KEY = VALUE, got '", Glance(), "'"));
    std::string key(text_.substr(0, length));
    Take(length);
    return key;
  }

  absl::Status Table() {
    if (absl::StartsWith(text_, "[[")) return Wrong("lists of tables ([[...]]) are not read");
    Take(1);
    SkipToContent(false);
    ONWARD_ASSIGN_OR_RETURN(table_, Key());
    SkipToContent(false);
    if (absl::StartsWith(text_, ".")) return Wrong("tables within tables are not read");
    if (!absl::StartsWith(text_, "]")) return Wrong("expected ']' behind the name of a table");
    Take(1);
    if (table_.empty()) return Wrong("a table needs a name");
    if (!tables_.insert(table_).second)
      return Wrong(absl::StrCat("table [", table_, "] stands twice"));
    return absl::OkStatus();
  }

  absl::Status Entry() {
    TomlEntry entry;
    entry.table = table_;
    entry.line = line_;
    ONWARD_ASSIGN_OR_RETURN(entry.key, Key());
    SkipToContent(false);
    if (absl::StartsWith(text_, ".")) return Wrong("keys with dots are not read; use a table");
    if (!absl::StartsWith(text_, "=")) {
      return Wrong(absl::StrCat("expected '=' behind '", entry.key, "'"));
    }
    Take(1);
    SkipToContent(false);
    ONWARD_ASSIGN_OR_RETURN(entry.value, Value(0));
    if (!keys_.insert({entry.table, entry.key}).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", entry.line, ": '", entry.key, "' stands twice"));
    }
    entries_.push_back(std::move(entry));
    return absl::OkStatus();
  }

  absl::StatusOr<TomlValue> Value(int depth) {
    if (text_.empty() || text_[0] == '\n') return Wrong("a value is missing");
    TomlValue value;
    if (text_[0] == '[') return List(depth);
    if (text_[0] == '{') return Wrong("tables on one line ({...}) are not read");
    if (text_[0] == '"' || text_[0] == '\'') {
      ONWARD_ASSIGN_OR_RETURN(value.text, String());
      return value;
    }
    const size_t length = std::min(text_.find_first_of(" \t\r\n,]#"), text_.size());
    const absl::string_view word = text_.substr(0, length);
    if (word == "true" || word == "false") {
      value.kind = TomlValue::Kind::kBoolean;
    } else if (IsNumber(word)) {
      value.kind = TomlValue::Kind::kNumber;
    } else {
      return Wrong(absl::StrCat(
          "'", word, "' is no number, true or false; text stands in quotes: \"", word, "\""));
    }
    value.text = std::string(word);
    if (value.kind == TomlValue::Kind::kNumber) std::erase(value.text, '_');
    Take(length);
    return value;
  }

  absl::StatusOr<TomlValue> List(int depth) {
    if (depth == kDeepest) return Wrong("lists in lists go too deep");
    const int begin = line_;
    TomlValue list;
    list.kind = TomlValue::Kind::kList;
    Take(1);
    while (SkipToContent(true)) {
      if (text_[0] == ']') {
        Take(1);
        return list;
      }
      ONWARD_ASSIGN_OR_RETURN(list.items.emplace_back(), Value(depth + 1));
      SkipToContent(true);
      if (absl::StartsWith(text_, ",")) {
        Take(1);
      } else if (!absl::StartsWith(text_, "]")) {
        break;
      }
    }
    return absl::InvalidArgumentError(
        absl::StrCat("line ", begin, ": a list that begins here does not end with ']'"));
  }

  absl::StatusOr<std::string> String() {
    const char quote = text_[0];
    if (text_.size() >= 3 && text_[1] == quote && text_[2] == quote) {
      return Wrong("strings of several lines are not read");
    }
    Take(1);
    std::string out;
    while (!text_.empty() && text_[0] != quote) {
      const char c = text_[0];
      if (c == '\n' || (static_cast<unsigned char>(c) < 0x20 && c != '\t')) break;
      if (c == '\\' && quote == '"') {
        ONWARD_RETURN_IF_ERROR(Escape(&out));
        continue;
      }
      out += c;
      Take(1);
    }
    if (text_.empty() || text_[0] != quote) {
      return Wrong(absl::StrCat("a string does not end with ", std::string(1, quote)));
    }
    Take(1);
    return out;
  }

  absl::Status Escape(std::string* out) {
    constexpr absl::string_view kShort = "\"\\bfnrt", kMeant = "\"\\\b\f\n\r\t";
    const char c = text_.size() > 1 ? text_[1] : ' ';
    if (const size_t at = kShort.find(c); at != absl::string_view::npos) {
      *out += kMeant[at];
      Take(2);
      return absl::OkStatus();
    }
    const size_t digits = c == 'u' ? 4 : c == 'U' ? 8 : 0;
    const absl::string_view hex = text_.substr(std::min<size_t>(2, text_.size())).substr(0, digits);
    uint32_t value = 0;
    bool good = digits > 0 && hex.size() == digits;
    for (const char h : hex) {
      good &= absl::ascii_isxdigit(static_cast<unsigned char>(h));
      const char lower = absl::ascii_tolower(static_cast<unsigned char>(h));
      value = value * 16 + static_cast<uint32_t>(lower <= '9' ? lower - '0' : lower - 'a' + 10);
    }
    if (!good || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) {
      return Wrong(absl::StrCat("'", text_.substr(0, 2),
                                "' is no escape in a string; '...' takes "
                                "text as it is"));
    }
    AppendUtf8(value, out);
    Take(2 + digits);
    return absl::OkStatus();
  }

  absl::string_view text_;
  int line_ = 1;
  std::string table_;
  std::set<std::string> tables_;
  std::set<std::pair<std::string, std::string>> keys_;
  std::vector<TomlEntry> entries_;
};

}  // namespace

absl::StatusOr<std::vector<TomlEntry>> ParseToml(absl::string_view text) {
  return TomlReader(text).Read();
}

std::string TomlText(absl::string_view value) {
  // '_' is not part of a number that is read back.
  const bool number = IsNumber(value) && !absl::StrContains(value, "_");
  if (value == "true" || value == "false" || number) return std::string(value);
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace onward
