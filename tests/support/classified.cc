// SPDX-License-Identifier: Apache-2.0
#include "tests/support/classified.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace onward {

std::string LinearClassifier(int features, int classes) {
  const std::vector<int> zeros(static_cast<size_t>(features) * classes, 0);
  return absl::StrCat("g (float[N, ", features, "] x) => (float[N, ", classes, "] y) <float[",
                      features, ", ", classes, "] w = {", absl::StrJoin(zeros, ", "),
                      "}> { y = MatMul(x, w) }");
}

std::string ClassifiedCsv(const std::vector<std::string>& names, int rows,
                          const std::vector<std::string>& left_out) {
  const size_t features = names.size();
  std::string text;
  for (size_t f = 0; f < features; ++f) absl::StrAppend(&text, "x", f, ",");
  text += "label\n";
  for (int i = 0; i < rows; ++i) {
    const size_t c = static_cast<size_t>(i) % features;
    if (std::count(left_out.begin(), left_out.end(), names[c]) > 0) continue;
    for (size_t f = 0; f < features; ++f) {
      absl::StrAppend(&text, f == c ? 2.0 + 0.01 * (i % 7) : 0.1 * ((i + static_cast<int>(f)) % 3),
                      ",");
    }
    absl::StrAppend(&text, names[c], "\n");
  }
  return text;
}

}  // namespace onward
