// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "trainer/doctor/checks.h"

namespace onward {

DoctorFinding NothingTrains(const std::string& why) {
  return {"nothing-trains", "model", 0, why,
          "name what is to learn with --train PATTERN, or take back --freeze; `onward inspect` "
          "lists the weights"};
}

DoctorFindings TrainedFindings(const std::set<std::string>& trained, size_t decided) {
  if (!trained.empty()) return {};
  return {NothingTrains(absl::StrCat("0 of ", decided, " weights are updated by training_info"))};
}

}  // namespace onward
