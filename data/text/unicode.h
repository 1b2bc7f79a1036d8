// SPDX-License-Identifier: Apache-2.0
// What tokenizers have to know of characters.
#ifndef ONWARD_DATA_TEXT_UNICODE_H_
#define ONWARD_DATA_TEXT_UNICODE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace onward {

struct Character {
  uint32_t value = 0;
  size_t bytes = 0;  // 0: the text does not begin with a character of UTF-8
};
Character FirstCharacter(absl::string_view text);

bool IsBlank(uint32_t c);
bool IsControl(uint32_t c);  // also what replaces characters that could not be read
bool IsPunctuation(uint32_t c);
bool IsIdeograph(uint32_t c);

// Appends the character in lower case and without its accent.
void AppendSimple(uint32_t c, std::string* out);

}  // namespace onward

#endif  // ONWARD_DATA_TEXT_UNICODE_H_
