// SPDX-License-Identifier: Apache-2.0
// What is wrong with a file, all of it at once.
#ifndef ONWARD_DATA_TABLES_FINDINGS_H_
#define ONWARD_DATA_TABLES_FINDINGS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace onward {

class Findings {
 public:
  static constexpr size_t kMostKept = 20;

  // Keeps the first ones and counts the others. A remedy is told once.
  void Add(std::string finding, const std::string& remedy = "") {
    ++count_;
    if (kept_.size() < kMostKept) kept_.push_back(std::move(finding));
    const bool told = std::find(remedies_.begin(), remedies_.end(), remedy) != remedies_.end();
    if (!remedy.empty() && !told && remedies_.size() < kMostKept) remedies_.push_back(remedy);
  }
  // More of which nothing is known but their number.
  void AddUntold(int64_t count) { count_ += count; }
  int64_t count() const { return count_; }
  // An error that holds them, if there are any.
  absl::Status status() const {
    if (count_ == 0) return absl::OkStatus();
    if (count_ == 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(kept_[0], remedies_.empty() ? "" : "; ", absl::StrJoin(remedies_, "")));
    }
    std::string text = absl::StrCat(count_, " things are wrong:\n  ", absl::StrJoin(kept_, "\n  "));
    if (count_ > static_cast<int64_t>(kept_.size())) {
      absl::StrAppend(&text, "\n  and ", count_ - static_cast<int64_t>(kept_.size()), " more");
    }
    for (const std::string& remedy : remedies_) absl::StrAppend(&text, "\n", remedy);
    return absl::InvalidArgumentError(text);
  }

 private:
  std::vector<std::string> kept_, remedies_;
  int64_t count_ = 0;
};

}  // namespace onward

#endif  // ONWARD_DATA_TABLES_FINDINGS_H_
