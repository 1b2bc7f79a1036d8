// SPDX-License-Identifier: Apache-2.0
#include "tests/support/known_failures.h"

#include <fnmatch.h>
#include <gtest/gtest.h>

#include <fstream>

namespace onward {

std::vector<KnownFailure> ReadKnownFailures(const std::string& file, const std::string& folder) {
  std::ifstream in(file);
  std::vector<KnownFailure> known;
  for (std::string line; std::getline(in, line);) {
    const std::string prefix = folder + "/";
    if (line.rfind(prefix, 0) != 0) continue;
    const size_t colon = line.find(": ");
    EXPECT_NE(colon, std::string::npos) << "no reason: " << line;
    known.push_back({line.substr(prefix.size(), colon - prefix.size()), line.substr(colon + 2)});
  }
  return known;
}

Expected ExpectedOf(const std::string& name, std::vector<KnownFailure>& known) {
  Expected expected;
  for (KnownFailure& failure : known) {
    if (fnmatch(failure.pattern.c_str(), name.c_str(), 0) != 0) continue;
    failure.matched = true;
    expected = {failure.by_rounding(), true};
  }
  return expected;
}

void ExpectAllMatched(const std::string& folder, const std::vector<KnownFailure>& known) {
  for (const KnownFailure& failure : known) {
    EXPECT_TRUE(failure.matched) << "no such case: " << folder << "/" << failure.pattern;
  }
}

}  // namespace onward
