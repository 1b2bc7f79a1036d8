// SPDX-License-Identifier: Apache-2.0
// A strict reader for a part of TOML (https://toml.io, version 1.0): comments, tables [NAME] of one
// level, and KEY = VALUE where a value is a string on one line ("..." or '...'), a decimal number,
// true, false, or a list of these. Anything else is an error that names its line.
#ifndef ONWARD_CLI_TOML_H_
#define ONWARD_CLI_TOML_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace onward {

struct TomlValue {
  enum class Kind { kString, kNumber, kBoolean, kList };
  Kind kind = Kind::kString;
  std::string text;              // a number as it is written, without '_'; "true" or "false"
  std::vector<TomlValue> items;  // of a list
};

struct TomlEntry {
  std::string table;  // "" before the first one
  std::string key;
  TomlValue value;
  int line = 0;  // from 1
};

// In the order of the file.
absl::StatusOr<std::vector<TomlEntry>> ParseToml(absl::string_view text);

// As a value is written: numbers, true and false bare, everything else as a string.
std::string TomlText(absl::string_view value);

}  // namespace onward

#endif  // ONWARD_CLI_TOML_H_
