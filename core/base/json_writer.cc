// SPDX-License-Identifier: Apache-2.0
// Writing JSON (json.h).
#include <algorithm>
#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/json.h"
#include "core/base/status.h"
#include "core/base/utf8.h"

namespace onward {
namespace {

template <typename T>
std::string Shortest(T value) {
  if (!std::isfinite(value)) return "null";
  char buffer[40];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, result.ptr);
}

// A byte that is no UTF-8 becomes U+FFFD, or 0xDC00 + byte where bytes are kept.
std::string Quoted(absl::string_view text, bool keep_bytes) {
  std::string out = "\"";
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    const char c = text[0];
    if (length == 0 && keep_bytes) {
      absl::StrAppendFormat(&out, "\\udc%02x", static_cast<unsigned char>(c));
    } else if (length == 0) {
      out += "\\ufffd";
    } else if (length > 1) {
      out += absl::StrCat(text.substr(0, length));
    } else if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned>(c));
    } else {
      out += c;
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out + "\"";
}

}  // namespace

std::string JsonNumber(double value) { return Shortest(value); }
std::string JsonNumber(float value) { return Shortest(value); }

std::string JsonString(absl::string_view text) { return Quoted(text, /*keep_bytes=*/false); }
std::string JsonBytes(absl::string_view text) { return Quoted(text, /*keep_bytes=*/true); }

std::string JsonStringList(const std::vector<std::string>& strings) {
  return absl::StrCat(
      "[",
      absl::StrJoin(strings, ",",
                    [](std::string* out, const std::string& s) { out->append(JsonBytes(s)); }),
      "]");
}

void JsonWriter::BeforeValue() {
  const bool in_object = !open_.empty() && open_.back() == '}';
  CheckInvariant(in_object == after_key_,
                 "a JSON key stands before every value of an object and nowhere else");
  CheckInvariant(!open_.empty() || text_.empty(), "a JSON text holds one value");
  if (!after_key_ && !first_) text_ += ',';
  after_key_ = false;
  first_ = false;
}

JsonWriter& JsonWriter::Open(char open, char close) {
  BeforeValue();
  text_ += open;
  open_ += close;
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::Close(char close) {
  CheckInvariant(!open_.empty() && open_.back() == close && !after_key_, "JSON brackets match");
  text_ += close;
  open_.pop_back();
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::Key(absl::string_view key) {
  CheckInvariant(!open_.empty() && open_.back() == '}' && !after_key_,
                 "a JSON key stands in an object");
  if (!first_) text_ += ',';
  absl::StrAppend(&text_, JsonString(key), ":");
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::Put(absl::string_view token) {
  BeforeValue();
  absl::StrAppend(&text_, token);
  return *this;
}

}  // namespace onward
