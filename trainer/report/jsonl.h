// SPDX-License-Identifier: Apache-2.0
// JSON text: a writer for one value, and a file of one object per line.
#ifndef ONWARD_TRAINER_REPORT_JSONL_H_
#define ONWARD_TRAINER_REPORT_JSONL_H_

#include <concepts>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace onward {

// Quoted and escaped; bytes that are not UTF-8 become U+FFFD.
std::string JsonString(absl::string_view text);
// The shortest text that reads back as the same number; "null" where JSON has
// none (NaN, infinities).
std::string JsonNumber(double value);
std::string JsonNumber(float value);

// A list of strings as JSON that holds any bytes: those that are not UTF-8 become U+DC80 to
// U+DCFF, as Python's "surrogateescape" has it, and come back from there.
std::string JsonStringList(const std::vector<std::string>& strings);
absl::StatusOr<std::vector<std::string>> ParseJsonStringList(absl::string_view json);

// Writes one value, compact, in the order of the calls:
//   JsonWriter w;
//   w.BeginObject().Field("step", 3).Field("loss", 0.5f).Key("dims").BeginArray()...
// Calls in an order that JSON does not allow break an invariant.
class JsonWriter {
 public:
  JsonWriter& BeginObject() { return Open('{', '}'); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& BeginArray() { return Open('[', ']'); }
  JsonWriter& EndArray() { return Close(']'); }
  JsonWriter& Key(absl::string_view key);

  JsonWriter& Value(absl::string_view text) { return Put(JsonString(text)); }
  JsonWriter& Value(const char* text) { return Value(absl::string_view(text)); }
  JsonWriter& Value(const std::string& text) { return Value(absl::string_view(text)); }
  JsonWriter& Value(double value) { return Put(JsonNumber(value)); }
  JsonWriter& Value(float value) { return Put(JsonNumber(value)); }
  // Integers, and bool as true or false.
  template <std::integral T>
  JsonWriter& Value(T value) {
    if constexpr (std::same_as<T, bool>) {
      return Put(value ? "true" : "false");
    } else {
      return Put(std::to_string(value));
    }
  }
  JsonWriter& Null() { return Put("null"); }

  template <typename T>
  JsonWriter& Field(absl::string_view key, const T& value) {
    return Key(key).Value(value);
  }
  template <typename T>
  JsonWriter& Values(const std::vector<T>& values) {
    BeginArray();
    for (const T& v : values) Value(v);
    return EndArray();
  }

  // The text so far; whole once everything opened is closed.
  const std::string& text() const { return text_; }

 private:
  JsonWriter& Open(char open, char close);
  JsonWriter& Close(char close);
  JsonWriter& Put(absl::string_view token);
  void BeforeValue();

  std::string text_;
  std::string open_;  // closing brackets still to come
  bool first_ = true;
  bool after_key_ = false;
};

// A file that grows by whole lines, each handed to the system before Append
// returns.
class JsonlFile {
 public:
  // `append` continues a file that exists, without a half line at its end;
  // otherwise it starts empty.
  static absl::StatusOr<JsonlFile> Open(const std::string& path, bool append);

  absl::Status Append(const JsonWriter& object);

 private:
  JsonlFile(std::string path, std::FILE* file) : path_(std::move(path)), file_(file, std::fclose) {}

  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

}  // namespace onward

#endif  // ONWARD_TRAINER_REPORT_JSONL_H_
