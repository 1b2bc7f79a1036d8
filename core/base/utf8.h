// SPDX-License-Identifier: Apache-2.0
// Characters as bytes of UTF-8.
#ifndef ONWARD_CORE_BASE_UTF8_H_
#define ONWARD_CORE_BASE_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace onward {

// Bytes of the well-formed character at the start of `text`, or 0.
size_t Utf8Length(absl::string_view text);

// What is no character becomes U+FFFD.
void AppendUtf8(uint32_t character, std::string* out);

}  // namespace onward

#endif  // ONWARD_CORE_BASE_UTF8_H_
