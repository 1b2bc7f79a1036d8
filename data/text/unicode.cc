// SPDX-License-Identifier: Apache-2.0
#include "data/text/unicode.h"

#include <locale.h>
#include <wctype.h>

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "core/base/utf8.h"

namespace onward {
namespace {

struct Range {
  uint32_t first, last;
};

// Category P beyond ASCII: of Europe, the Near East and East Asia.
constexpr Range kPunctuation[] = {
    {0xa1, 0xa1},     {0xa7, 0xa7},     {0xab, 0xab},     {0xb6, 0xb7},     {0xbb, 0xbb},
    {0xbf, 0xbf},     {0x37e, 0x37e},   {0x387, 0x387},   {0x55a, 0x55f},   {0x589, 0x58a},
    {0x5be, 0x5be},   {0x5c0, 0x5c0},   {0x5c3, 0x5c3},   {0x5c6, 0x5c6},   {0x5f3, 0x5f4},
    {0x609, 0x60a},   {0x60c, 0x60d},   {0x61b, 0x61b},   {0x61d, 0x61f},   {0x66a, 0x66d},
    {0x6d4, 0x6d4},   {0x2010, 0x2027}, {0x2030, 0x2043}, {0x2045, 0x2051}, {0x2053, 0x205e},
    {0x207d, 0x207e}, {0x208d, 0x208e}, {0x2308, 0x230b}, {0x2329, 0x232a}, {0x2768, 0x2775},
    {0x27c5, 0x27c6}, {0x27e6, 0x27ef}, {0x2983, 0x2998}, {0x29d8, 0x29db}, {0x29fc, 0x29fd},
    {0x2cf9, 0x2cfc}, {0x2cfe, 0x2cff}, {0x2d70, 0x2d70}, {0x2e00, 0x2e2e}, {0x2e30, 0x2e4f},
    {0x2e52, 0x2e5d}, {0x3001, 0x3003}, {0x3008, 0x3011}, {0x3014, 0x301f}, {0x3030, 0x3030},
    {0x303d, 0x303d}, {0x30a0, 0x30a0}, {0x30fb, 0x30fb}, {0xfe10, 0xfe19}, {0xfe30, 0xfe52},
    {0xfe54, 0xfe61}, {0xfe63, 0xfe63}, {0xfe68, 0xfe68}, {0xfe6a, 0xfe6b}, {0xff01, 0xff03},
    {0xff05, 0xff0a}, {0xff0c, 0xff0f}, {0xff1a, 0xff1b}, {0xff1f, 0xff20}, {0xff3b, 0xff3d},
    {0xff3f, 0xff3f}, {0xff5b, 0xff5b}, {0xff5d, 0xff5d}, {0xff5f, 0xff65}};

constexpr Range kIdeographs[] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},
                                 {0x20000, 0x2a6df}, {0x2a700, 0x2ceaf}, {0x2f800, 0x2fa1f}};

// The letters under accents, '.' where there are none, of two ranges.
constexpr uint32_t kLatin = 0xc0, kLatinAdditional = 0x1e00;
constexpr absl::string_view kLatinLetters =
    "AAAAAA.CEEEEIIII.NOOOOO..UUUUY..aaaaaa.ceeeeiiii.nooooo..uuuuy.yAaAaAaCcCcCcCcDd..EeEeEe"
    "EeEeGgGgGgGgHh..IiIiIiIiI...JjKk.LlLlLl....NnNnNn...OoOoOo..RrRrRrSsSsSsSsTtTt..UuUuUuUu"
    "UuUuWwYyYZzZzZz.................................Oo.............Uu......................."
    ".....AaIiOoUuUuUuUuUu.AaAa....GgKkOoOo..j...Gg..NnAa....AaAaEeEeIiIiOoOoRrRrUuUuSsTt..Hh"
    "......AaEeOoOoOoOoYy";
constexpr absl::string_view kLatinAdditionalLetters =
    "AaBbBbBbCcDdDdDdDdDdEeEeEeEeEeFfGgHhHhHhHhHhIiIiKkKkKkLlLlLlLlMmMmMmNnNnNnNnOoOoOoOoPpPp"
    "RrRrRrRrSsSsSsSsSsTtTtTtTtUuUuUuUuUuVvVvWwWwWwWwWwXxXxYyZzZzZzhtwy......AaAaAaAaAaAaAaAa"
    "AaAaAaAaEeEeEeEeEeEeEeEeIiIiOoOoOoOoOoOoOoOoOoOoOoOoUuUuUuUuUuUuUuYyYyYyYy......";

template <size_t n>
bool IsIn(const Range (&ranges)[n], uint32_t c) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [c](const Range& r) { return c >= r.first && c <= r.last; });
}

uint32_t WithoutAccent(uint32_t c) {
  const auto letter = [c](uint32_t first, absl::string_view letters) {
    const uint32_t at = c - first;
    return c < first || at >= letters.size() || letters[at] == '.'
               ? c
               : static_cast<uint32_t>(letters[at]);
  };
  return c < kLatinAdditional ? letter(kLatin, kLatinLetters)
                              : letter(kLatinAdditional, kLatinAdditionalLetters);
}

// glibc keeps Unicode's mappings in the data of its UTF-8 locales.
uint32_t LowerCase(uint32_t c) {
  if (c < 0x80) return static_cast<uint32_t>(absl::ascii_tolower(static_cast<unsigned char>(c)));
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (locale == nullptr) return c;
  return static_cast<uint32_t>(towlower_l(static_cast<wint_t>(c), locale));
}

}  // namespace

Character FirstCharacter(absl::string_view text) {
  const size_t bytes = Utf8Length(text);
  if (bytes == 0) return {};
  uint32_t value = static_cast<unsigned char>(text[0]);
  if (bytes > 1) value &= 0xffu >> (bytes + 1);
  for (size_t i = 1; i < bytes; ++i) {
    value = value << 6 | (static_cast<unsigned char>(text[i]) & 0x3f);
  }
  return {value, bytes};
}

bool IsBlank(uint32_t c) {
  return c == ' ' || (c >= 0x09 && c <= 0x0d) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

bool IsControl(uint32_t c) {
  return (c < 0x20 && !IsBlank(c)) || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0xfffd ||
         (c >= 0x200b && c <= 0x200f) || c == 0xfeff;
}

bool IsPunctuation(uint32_t c) {
  if (c < 0x80) return absl::ascii_ispunct(static_cast<unsigned char>(c));
  return IsIn(kPunctuation, c);
}

bool IsIdeograph(uint32_t c) { return c >= 0x3400 && IsIn(kIdeographs, c); }

void AppendSimple(uint32_t c, std::string* out) {
  if (c >= 0x300 && c <= 0x36f) return;  // marks that stand over the letter before
  AppendUtf8(WithoutAccent(LowerCase(c)), out);
}

}  // namespace onward
