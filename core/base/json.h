// SPDX-License-Identifier: Apache-2.0
// JSON text: a writer for one value, and values read back.
#ifndef ONWARD_CORE_BASE_JSON_H_
#define ONWARD_CORE_BASE_JSON_H_

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace onward {

// Quoted and escaped; bytes that are not UTF-8 become U+FFFD.
std::string JsonString(absl::string_view text);
// The same, but such bytes become U+DC80 to U+DCFF, as Python's "surrogateescape" has it, and
// come back from there.
std::string JsonBytes(absl::string_view text);
// The shortest text that reads back as the same number; "null" where JSON has
// none (NaN, infinities).
std::string JsonNumber(double value);
std::string JsonNumber(float value);

// A list of strings that may hold any bytes (JsonBytes).
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
  // Text that may hold any bytes (JsonBytes).
  JsonWriter& Bytes(absl::string_view text) { return Put(JsonBytes(text)); }

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

// A value as it was read. What is asked for something that it is not answers with nothing:
// a string of a number is "", an item of a string does not exist.
class Json {
 public:
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };
  using Member = std::pair<std::string, Json>;

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool truth() const { return kind_ == Kind::kBool && number_ != 0; }
  double number() const { return kind_ == Kind::kNumber ? number_ : 0; }
  // Of a string what it holds, of a number how it is written, else "".
  const std::string& text() const { return text_; }
  const std::vector<Json>& items() const { return items_; }        // of an array
  const std::vector<Member>& members() const { return members_; }  // of an object, in order
  const Json* Find(absl::string_view key) const;                   // null: no such member

 private:
  friend class JsonReader;
  Kind kind_ = Kind::kNull;
  double number_ = 0;
  std::string text_;
  std::vector<Json> items_;
  std::vector<Member> members_;
};

// One value that takes the whole text. NaN, which Python writes, is null. Errors say what was
// expected and where.
absl::StatusOr<Json> ParseJson(absl::string_view text);

}  // namespace onward

#endif  // ONWARD_CORE_BASE_JSON_H_
