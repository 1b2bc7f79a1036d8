// SPDX-License-Identifier: Apache-2.0
// What a data spec says about text.
#ifndef ONWARD_DATA_TEXT_TEXT_OPTIONS_H_
#define ONWARD_DATA_TEXT_TEXT_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/preparation.h"

namespace onward {

struct TextOptions {
  std::optional<TokenKind> tokens;
  std::string vocabulary;         // a file
  std::optional<int64_t> length;  // tokens of an example, at most
  std::optional<int64_t> stride;  // tokens between the beginnings of two examples
  bool lines = false;             // an example for each line
  std::string column;             // of a table: the one that holds text
};

inline constexpr int64_t kUsualLength = 128;

// Whether a spec may say `name` of text; sets it in this case.
bool IsTextOption(const std::string& name);
absl::Status SetTextOption(const std::string& name, const std::string& value, TextOptions* options);

}  // namespace onward

#endif  // ONWARD_DATA_TEXT_TEXT_OPTIONS_H_
