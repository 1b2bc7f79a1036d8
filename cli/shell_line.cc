// SPDX-License-Identifier: Apache-2.0
#include "cli/shell_line.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace onward {

std::string ShellWord(const std::string& word) {
  const auto plain = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::string_view("-_./:,=+@%").find(c) != absl::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

std::string ShellLine(const std::string& command, const Args& args) {
  std::string line = absl::StrCat("onward ", command);
  for (const std::string& word : args.words()) absl::StrAppend(&line, " ", ShellWord(word));
  return line;
}

}  // namespace onward
