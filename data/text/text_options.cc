// SPDX-License-Identifier: Apache-2.0
#include "data/text/text_options.h"

#include <map>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "data/spec_kinds.h"

namespace onward {
namespace {

constexpr int64_t kLongest = 1 << 20;

}  // namespace

bool IsTextOption(const std::string& name) {
  const std::set<std::string> names = {"tokens", "vocab", "length", "stride", "lines", "column"};
  return names.contains(name);
}

absl::Status SetTextOption(const std::string& name, const std::string& value,
                           TextOptions* options) {
  if (name == "tokens") {
    const std::map<std::string, TokenKind> kinds = {{"bytes", TokenKind::kBytes},
                                                    {"chars", TokenKind::kCharacters},
                                                    {"wordpiece", TokenKind::kWordPieces}};
    const auto it = kinds.find(value);
    if (it == kinds.end()) return WrongOption(name, value, "bytes, chars or wordpiece");
    options->tokens = it->second;
  } else if (name == "length" || name == "stride") {
    int64_t n = 0;
    if (!absl::SimpleAtoi(value, &n) || n < 1 || n > kLongest) {
      return WrongOption(name, value, "a number from 1 to 1048576");
    }
    (name == "length" ? options->length : options->stride) = n;
  } else if (name == "lines") {
    if (value != "0" && value != "1") return WrongOption(name, value, "0 or 1");
    options->lines = value == "1";
  } else {
    (name == "vocab" ? options->vocabulary : options->column) = value;
  }
  return absl::OkStatus();
}

}  // namespace onward
