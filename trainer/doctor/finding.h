// SPDX-License-Identifier: Apache-2.0
// One reason why a model does not learn.
#ifndef ONWARD_TRAINER_DOCTOR_FINDING_H_
#define ONWARD_TRAINER_DOCTOR_FINDING_H_

#include <string>
#include <vector>

namespace onward {

struct DoctorFinding {
  std::string id;     // short, stable (docs/doctor.md lists them): "dead-units"
  std::string place;  // "node 'relu1' (Relu)", "weight 'fc1.weight'", "input 'x'"
  double number = 0;  // what shows it
  std::string what;   // a sentence, with this number and others
  std::string help;   // what to try, with the flag where there is one
};

using DoctorFindings = std::vector<DoctorFinding>;

}  // namespace onward

#endif  // ONWARD_TRAINER_DOCTOR_FINDING_H_
