// SPDX-License-Identifier: Apache-2.0
#include "core/base/size_text.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace onward {

std::string SizeText(int64_t bytes) {
  if (bytes < 1 << 10) return absl::StrCat(bytes, bytes == 1 ? " byte" : " bytes");
  constexpr const char* kUnits[] = {"kB", "MB", "GB"};
  double size = static_cast<double>(bytes) / (1 << 10);
  size_t unit = 0;
  // What would be written as 1024.0 of a unit is 1.0 of the next.
  for (; size >= 1023.95 && unit + 1 < std::size(kUnits); ++unit) size /= 1 << 10;
  return absl::StrFormat("%.1f %s", size, kUnits[unit]);
}

}  // namespace onward
