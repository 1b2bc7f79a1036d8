// SPDX-License-Identifier: Apache-2.0
// Reading JSON (json.h).
#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/json.h"
#include "core/base/status.h"
#include "core/base/utf8.h"

namespace onward {
namespace {

constexpr int kDeepest = 64;

bool IsHighSurrogate(uint32_t c) { return c >= 0xd800 && c < 0xdc00; }
bool IsLowSurrogate(uint32_t c) { return c >= 0xdc00 && c < 0xe000; }

}  // namespace

class JsonReader {
 public:
  explicit JsonReader(absl::string_view text) : text_(text) {}

  absl::StatusOr<Json> Whole() {
    Json value;
    ONWARD_RETURN_IF_ERROR(Value(0, &value));
    SkipSpace();
    if (!text_.empty()) return Wrong("the end");
    return value;
  }

 private:
  absl::Status Wrong(absl::string_view expected) const {
    if (text_.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("is no JSON: it ends where ", expected, " is expected"));
    }
    return absl::InvalidArgumentError(
        absl::StrCat("is no JSON: expected ", expected, " at '", text_.substr(0, 20), "'"));
  }
  void SkipSpace() { text_ = absl::StripLeadingAsciiWhitespace(text_); }
  bool Take(absl::string_view token) {
    SkipSpace();
    if (!absl::StartsWith(text_, token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }

  absl::Status Value(int depth, Json* out) {
    if (depth > kDeepest) return Wrong("less nesting");
    if (Take("{")) return Object(depth, out);
    if (Take("[")) return Array(depth, out);
    if (absl::StartsWith(text_, "\"")) {
      out->kind_ = Json::Kind::kString;
      return String(&out->text_);
    }
    if (Take("null") || Take("NaN")) return absl::OkStatus();
    const bool yes = Take("true");
    if (yes || Take("false")) {
      out->kind_ = Json::Kind::kBool;
      out->number_ = yes ? 1 : 0;
      return absl::OkStatus();
    }
    return Number(out);
  }

  absl::Status Object(int depth, Json* out) {
    out->kind_ = Json::Kind::kObject;
    if (Take("}")) return absl::OkStatus();
    do {
      SkipSpace();
      Json::Member& member = out->members_.emplace_back();
      ONWARD_RETURN_IF_ERROR(String(&member.first));
      if (!Take(":")) return Wrong("':'");
      ONWARD_RETURN_IF_ERROR(Value(depth + 1, &member.second));
    } while (Take(","));
    return Take("}") ? absl::OkStatus() : Wrong("',' or '}'");
  }

  absl::Status Array(int depth, Json* out) {
    out->kind_ = Json::Kind::kArray;
    if (Take("]")) return absl::OkStatus();
    do {
      ONWARD_RETURN_IF_ERROR(Value(depth + 1, &out->items_.emplace_back()));
    } while (Take(","));
    return Take("]") ? absl::OkStatus() : Wrong("',' or ']'");
  }

  absl::Status Number(Json* out) {
    const size_t end = std::min(text_.find_first_not_of("+-.0123456789eE"), text_.size());
    const absl::string_view token = text_.substr(0, end);
    const bool starts = !token.empty() && (token[0] == '-' || absl::ascii_isdigit(token[0]));
    const auto result = std::from_chars(token.data(), token.data() + token.size(), out->number_);
    if (!starts || result.ec == std::errc::invalid_argument ||
        result.ptr != token.data() + token.size()) {
      return Wrong("a value");
    }
    if (result.ec != std::errc() || !std::isfinite(out->number_)) return Wrong("a smaller number");
    out->kind_ = Json::Kind::kNumber;
    out->text_ = std::string(token);
    text_.remove_prefix(end);
    return absl::OkStatus();
  }

  absl::Status String(std::string* out) {
    if (!Take("\"")) return Wrong("a string");
    while (!text_.empty() && text_[0] != '"') {
      const size_t plain = std::min(text_.find_first_of("\"\\"), text_.size());
      const absl::string_view run = text_.substr(0, plain);
      for (const char c : run) {
        if (static_cast<unsigned char>(c) < 0x20) return Wrong("no control characters");
      }
      absl::StrAppend(out, run);
      text_.remove_prefix(plain);
      if (absl::StartsWith(text_, "\\")) {
        text_.remove_prefix(1);
        ONWARD_RETURN_IF_ERROR(Escape(out));
      }
    }
    if (text_.empty()) return Wrong("'\"'");
    text_.remove_prefix(1);
    return absl::OkStatus();
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

const Json* Json::Find(absl::string_view key) const {
  for (const Member& member : members_) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

absl::StatusOr<Json> ParseJson(absl::string_view text) { return JsonReader(text).Whole(); }

absl::StatusOr<std::vector<std::string>> ParseJsonStringList(absl::string_view json) {
  ONWARD_ASSIGN_OR_RETURN(const Json list, ParseJson(json));
  std::vector<std::string> strings;
  for (const Json& item : list.items()) {
    if (item.is(Json::Kind::kString)) strings.push_back(item.text());
  }
  if (!list.is(Json::Kind::kArray) || strings.size() != list.items().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("is no JSON list of strings: '", json.substr(0, 40), "'"));
  }
  return strings;
}

}  // namespace onward
