// SPDX-License-Identifier: Apache-2.0
// Lists of what does not pass, each line with its reason, exact in both directions.
#ifndef ONWARD_TESTS_SUPPORT_KNOWN_FAILURES_H_
#define ONWARD_TESTS_SUPPORT_KNOWN_FAILURES_H_

#include <string>
#include <vector>

namespace onward {

// A line "FOLDER/PATTERN: reason".
struct KnownFailure {
  std::string pattern;  // * stands for any characters
  std::string reason;
  bool matched = false;
  // Rounding may go either way on another machine.
  bool by_rounding() const { return reason.find("round") != std::string::npos; }
};

// The lines of a file about this folder.
std::vector<KnownFailure> ReadKnownFailures(const std::string& file, const std::string& folder);

// Whether a case may pass, whether it may fail, as the list has it.
struct Expected {
  bool pass = true, fail = false;
};
Expected ExpectedOf(const std::string& name, std::vector<KnownFailure>& known);

// Fails for every line that no case matched.
void ExpectAllMatched(const std::string& folder, const std::vector<KnownFailure>& known);

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_KNOWN_FAILURES_H_
