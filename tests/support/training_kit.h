// SPDX-License-Identifier: Apache-2.0
// Reads and runs the cases of tests/training_conformance (its README says what they hold).
#ifndef ONWARD_TESTS_SUPPORT_TRAINING_KIT_H_
#define ONWARD_TESTS_SUPPORT_TRAINING_KIT_H_

#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/compare_tensors.h"

namespace onward {

// What is known of a variable that is drawn at random.
struct DrawnValues {
  double low = 0, high = 0, mean = 0, deviation = -1;  // below 0: not said
  bool repeats = false;                                // each initialize draws the same
};

struct KitCase {
  std::string name;  // "bindings/swap"
  std::string folder, about;
  std::vector<std::string> rules;     // of docs/training-info.md
  std::vector<std::string> findings;  // what `check` reports, sorted, each once
  std::vector<std::string> actions;
  bool refused = false;
  Tolerance tolerance;
  std::map<std::string, DrawnValues> drawn;
};

inline void PrintTo(const KitCase& kit_case, std::ostream* out) { *out << kit_case.name; }

std::string KitFolder();  // tests/training_conformance/cases
std::vector<KitCase>
ReadKit();  // sorted by name; throws std::runtime_error where one cannot be read

// OK where the case does what it has to, else an error that says what departs and after which
// action.
absl::Status RunKitCase(const KitCase& kit_case);

// Whether it has steps whose results follow from the file, and the same of these by the plain
// models that `export --portable-step` writes.
bool HasPlainSteps(const KitCase& kit_case);
absl::Status RunPlainSteps(const KitCase& kit_case);

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_TRAINING_KIT_H_
