// SPDX-License-Identifier: Apache-2.0
#include "data/pictures/json_field.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace onward {
namespace {

absl::Status Damaged(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("is no JSON object: ", what));
}

void AppendUtf8(uint32_t c, std::string* out) {
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out->push_back(static_cast<char>(0xc0 | c >> 6));
    out->push_back(static_cast<char>(0x80 | (c & 0x3f)));
  } else {
    out->push_back(static_cast<char>(0xe0 | c >> 12));
    out->push_back(static_cast<char>(0x80 | (c >> 6 & 0x3f)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3f)));
  }
}

class Scanner {
 public:
  explicit Scanner(absl::string_view text) : rest_(text) {}

  bool Take(char c) {
    rest_ = absl::StripLeadingAsciiWhitespace(rest_);
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  absl::StatusOr<std::string> String() {
    if (!Take('"')) return Damaged("a string is missing");
    std::string out;
    while (!rest_.empty() && rest_[0] != '"') {
      char c = rest_[0];
      rest_.remove_prefix(1);
      if (c == '\\')
        ONWARD_RETURN_IF_ERROR(Escaped(&out));
      else
        out.push_back(c);
    }
    if (!Take('"')) return Damaged("a string is not closed");
    return out;
  }

  // Up to the end of a value; the text of a scalar.
  absl::StatusOr<std::optional<std::string>> Value() {
    rest_ = absl::StripLeadingAsciiWhitespace(rest_);
    if (absl::StartsWith(rest_, "\"")) {
      ONWARD_ASSIGN_OR_RETURN(std::string text, String());
      return std::optional<std::string>(std::move(text));
    }
    if (absl::StartsWith(rest_, "{") || absl::StartsWith(rest_, "[")) {
      ONWARD_RETURN_IF_ERROR(SkipNested());
      return std::optional<std::string>();
    }
    const absl::string_view word =
        absl::StripTrailingAsciiWhitespace(rest_.substr(0, rest_.find_first_of(",}")));
    if (word.empty()) return Damaged("a value is missing");
    rest_.remove_prefix(word.size());
    return std::optional<std::string>(word);
  }

 private:
  absl::Status Escaped(std::string* out) {
    if (rest_.empty()) return Damaged("a string is not closed");
    const char c = rest_[0];
    rest_.remove_prefix(1);
    constexpr absl::string_view kLetters = "bfnrt", kControls = "\b\f\n\r\t";
    if (c == 'u') {
      uint32_t code = 0;
      if (rest_.size() < 4 || !absl::SimpleHexAtoi(rest_.substr(0, 4), &code)) {
        return Damaged("an escape is cut off");
      }
      rest_.remove_prefix(4);
      AppendUtf8(code, out);
    } else if (const size_t at = kLetters.find(c); at != absl::string_view::npos) {
      out->push_back(kControls[at]);
    } else {
      out->push_back(c);
    }
    return absl::OkStatus();
  }

  absl::Status SkipNested() {
    int64_t depth = 0;
    do {
      if (rest_.empty()) return Damaged("a bracket is not closed");
      const char c = rest_[0];
      if (c == '"') {
        ONWARD_RETURN_IF_ERROR(String().status());
        continue;
      }
      depth += c == '{' || c == '[';
      depth -= c == '}' || c == ']';
      rest_.remove_prefix(1);
    } while (depth > 0);
    return absl::OkStatus();
  }

  absl::string_view rest_;
};

}  // namespace

absl::StatusOr<std::optional<std::string>> JsonScalar(absl::string_view json,
                                                      absl::string_view key) {
  Scanner scanner(json);
  if (!scanner.Take('{')) return Damaged("it does not begin with '{'");
  if (scanner.Take('}')) return std::optional<std::string>();
  do {
    ONWARD_ASSIGN_OR_RETURN(const std::string name, scanner.String());
    if (!scanner.Take(':')) return Damaged("a ':' is missing");
    ONWARD_ASSIGN_OR_RETURN(std::optional<std::string> value, scanner.Value());
    if (name != key) continue;
    if (!value) return absl::InvalidArgumentError(absl::StrCat("'", key, "' is no single value"));
    return value;
  } while (scanner.Take(','));
  if (!scanner.Take('}')) return Damaged("a '}' is missing");
  return std::optional<std::string>();
}

}  // namespace onward
