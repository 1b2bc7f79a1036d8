// SPDX-License-Identifier: Apache-2.0
// Reading back a JSON list of strings (jsonl.h).
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "trainer/report/jsonl.h"

namespace onward {
namespace {

bool IsHighSurrogate(uint32_t c) { return c >= 0xd800 && c < 0xdc00; }
bool IsLowSurrogate(uint32_t c) { return c >= 0xdc00 && c < 0xe000; }

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

class Reader {
 public:
  explicit Reader(absl::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<std::string>> List() {
    std::vector<std::string> strings;
    if (!Take('[')) return Wrong("'['");
    if (!Take(']')) {
      do {
        ONWARD_ASSIGN_OR_RETURN(strings.emplace_back(), String());
      } while (Take(','));
      if (!Take(']')) return Wrong("',' or ']'");
    }
    SkipSpace();
    if (!text_.empty()) return Wrong("the end");
    return strings;
  }

 private:
  absl::Status Wrong(absl::string_view expected) const {
    return absl::InvalidArgumentError(absl::StrCat("is no JSON list of strings: expected ",
                                                   expected, " at '", text_.substr(0, 20), "'"));
  }
  void SkipSpace() { text_ = absl::StripLeadingAsciiWhitespace(text_); }
  bool Take(char c) {
    SkipSpace();
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }

  absl::StatusOr<std::string> String() {
    if (!Take('"')) return Wrong("a string");
    std::string out;
    while (!text_.empty() && text_[0] != '"') {
      const char c = text_[0];
      if (static_cast<unsigned char>(c) < 0x20) return Wrong("no control characters");
      text_.remove_prefix(1);
      if (c != '\\') {
        out += c;
      } else {
        ONWARD_RETURN_IF_ERROR(Escape(&out));
      }
    }
    if (text_.empty()) return Wrong("'\"'");
    text_.remove_prefix(1);
    return out;
  }

  absl::Status Escape(std::string* out) {
    constexpr absl::string_view kShort = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    const size_t at = text_.empty() ? absl::string_view::npos : kShort.find(text_[0]);
    if (at != absl::string_view::npos) {
      *out += kMeant[at];
      text_.remove_prefix(1);
      return absl::OkStatus();
    }
    ONWARD_ASSIGN_OR_RETURN(uint32_t c, Unit());
    if (IsHighSurrogate(c) && absl::StartsWith(text_, "\\u")) {
      text_.remove_prefix(1);
      ONWARD_ASSIGN_OR_RETURN(const uint32_t low, Unit());
      if (!IsLowSurrogate(low)) return Wrong("the other half of a character");
      c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    } else if (c >= 0xdc80 && c <= 0xdcff) {
      *out += static_cast<char>(c - 0xdc00);
      return absl::OkStatus();
    } else if (IsHighSurrogate(c) || IsLowSurrogate(c)) {
      return Wrong("the other half of a character");
    }
    AppendUtf8(c, out);
    return absl::OkStatus();
  }

  // uXXXX
  absl::StatusOr<uint32_t> Unit() {
    if (text_.size() < 5 || text_[0] != 'u') return Wrong("an escape");
    uint32_t value = 0;
    for (const char c : text_.substr(1, 4)) {
      if (!absl::ascii_isxdigit(static_cast<unsigned char>(c))) return Wrong("four digits");
      const char lower = absl::ascii_tolower(static_cast<unsigned char>(c));
      value = value * 16 + static_cast<uint32_t>(lower <= '9' ? lower - '0' : lower - 'a' + 10);
    }
    text_.remove_prefix(5);
    return value;
  }

  absl::string_view text_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> ParseJsonStringList(absl::string_view json) {
  return Reader(json).List();
}

}  // namespace onward
