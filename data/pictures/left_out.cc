// SPDX-License-Identifier: Apache-2.0
#include "data/pictures/left_out.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "data/pictures/picture.h"

namespace onward {
namespace {

constexpr size_t kMostEndings = 5;

std::string CountOf(size_t count, const char* what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

}  // namespace

std::vector<std::string> FilesLeftOut::Pictures(std::vector<std::string> names) {
  const auto others = std::stable_partition(names.begin(), names.end(), IsPictureName);
  for (auto it = others; it != names.end(); ++it) {
    ++endings_[absl::AsciiStrToLower(std::filesystem::path(*it).extension().string())];
  }
  names.erase(others, names.end());
  return names;
}

std::string FilesLeftOut::Endings() const {
  std::vector<std::pair<int64_t, std::string>> ordered;  // the most first
  for (const auto& [ending, count] : endings_) ordered.emplace_back(-count, ending);
  std::sort(ordered.begin(), ordered.end());
  std::vector<std::string> parts;
  for (const auto& [count, ending] : ordered) {
    if (parts.size() == kMostEndings) {
      parts.push_back(absl::StrCat(ordered.size() - kMostEndings, " other endings"));
      break;
    }
    const auto files = static_cast<size_t>(-count);
    parts.push_back(ending.empty() ? CountOf(files, "file") + " without an ending"
                                   : CountOf(files, (ending + " file").c_str()));
  }
  return absl::StrJoin(parts, ", ");
}

std::string FilesLeftOut::Text() const {
  std::vector<std::string> parts;
  if (!endings_.empty())
    parts.push_back(absl::StrCat(Endings(), " (", kPictureFormats, " are read)"));
  if (beside_ > 0) parts.push_back(CountOf(beside_, "picture") + " beside the classes' folders");
  if (folders_ > 0) parts.push_back(CountOf(folders_, "folder") + " further inside");
  return absl::StrCat("left out ", absl::StrJoin(parts, "; "));
}

}  // namespace onward
