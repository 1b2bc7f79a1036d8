// SPDX-License-Identifier: Apache-2.0
#include <locale.h>
#include <wctype.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "core/ops/text/text.h"

namespace onward {
namespace {

// glibc keeps Unicode's mappings in the data of its UTF-8 locales.
locale_t Utf8Locale() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return locale;
}

// The code point that begins at `at` and how many bytes it takes; 0 bytes: no UTF-8.
struct CodePoint {
  uint32_t value;
  int bytes;
};

CodePoint Decode(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  const int bytes = first < 0x80                     ? 1
                    : first >= 0xC2 && first <= 0xDF ? 2
                    : (first & 0xF0) == 0xE0         ? 3
                    : first >= 0xF0 && first <= 0xF4 ? 4
                                                     : 0;
  if (bytes == 0 || text.size() - at < static_cast<size_t>(bytes)) return {0, 0};
  if (bytes == 1) return {first, 1};
  uint32_t value = first & (0xFF >> (bytes + 1));
  for (int i = 1; i < bytes; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return {0, 0};
    value = value << 6 | (byte(at + i) & 0x3F);
  }
  return {value, bytes};
}

void Encode(uint32_t value, std::string* text) {
  if (value < 0x80) {
    text->push_back(static_cast<char>(value));
  } else if (value < 0x800) {
    text->push_back(static_cast<char>(0xC0 | value >> 6));
    text->push_back(static_cast<char>(0x80 | (value & 0x3F)));
  } else if (value < 0x10000) {
    text->push_back(static_cast<char>(0xE0 | value >> 12));
    text->push_back(static_cast<char>(0x80 | (value >> 6 & 0x3F)));
    text->push_back(static_cast<char>(0x80 | (value & 0x3F)));
  } else {
    text->push_back(static_cast<char>(0xF0 | value >> 18));
    text->push_back(static_cast<char>(0x80 | (value >> 12 & 0x3F)));
    text->push_back(static_cast<char>(0x80 | (value >> 6 & 0x3F)));
    text->push_back(static_cast<char>(0x80 | (value & 0x3F)));
  }
}

}  // namespace

absl::StatusOr<std::string> InCase(std::string_view text, Case wanted) {
  const bool ascii =
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x80; });
  const absl::string_view view(text.data(), text.size());
  if (ascii) {
    return wanted == Case::kLower ? absl::AsciiStrToLower(view) : absl::AsciiStrToUpper(view);
  }
  const locale_t locale = Utf8Locale();
  if (locale == nullptr) {
    return absl::FailedPreconditionError(
        "the case of letters beyond ASCII needs the system's locale C.UTF-8, which is not "
        "installed (Debian: apt-get install libc-bin)");
  }
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = Decode(text, at);
    if (point.bytes == 0) {
      result.push_back(text[at++]);
      continue;
    }
    const wint_t letter = static_cast<wint_t>(point.value);
    Encode(static_cast<uint32_t>(wanted == Case::kLower ? towlower_l(letter, locale)
                                                        : towupper_l(letter, locale)),
           &result);
    at += point.bytes;
  }
  return result;
}

}  // namespace onward
