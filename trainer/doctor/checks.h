// SPDX-License-Identifier: Apache-2.0
// What the doctor looks for: one function for each kind of finding, in a file of its own. The
// thresholds stand there and in docs/doctor.md.
#ifndef ONWARD_TRAINER_DOCTOR_CHECKS_H_
#define ONWARD_TRAINER_DOCTOR_CHECKS_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "trainer/doctor/finding.h"
#include "trainer/doctor/one_batch.h"
#include "trainer/doctor/probe.h"
#include "trainer/run/judging.h"
#include "training_info/loss_parts.h"

namespace onward {

// input-not-finite, input-constant, input-scale, input-columns (inputs.cc).
DoctorFindings InputFindings(const Probe& probe);

// label-range, label-shifted, label-one-class, label-imbalance, label-binary, label-constant,
// label-not-finite, label-scale (labels.cc). `names` are the classes that the file knows by name.
struct LabelFacts {
  Judging judging;          // of the labels of the data set
  std::string output = "";  // of the model, for messages
  int64_t outputs = 0;      // classes that it tells apart; 0: not known
  std::vector<std::string> names = {};
};
absl::StatusOr<DoctorFindings> LabelFindings(const Dataset& data, const LabelFacts& facts);

// nothing-trains (trained.cc). `decided` are the weights that would train if all did.
DoctorFindings TrainedFindings(const std::set<std::string>& trained, size_t decided);
DoctorFinding NothingTrains(const std::string& why);

// dead-units (units.cc). `after` some steps, where there were any; `learned`: with some rate the
// model learned the batch.
DoctorFindings UnitFindings(const Probe& before, const Probe& after, bool learned);

// no-gradient, vanishing-gradients, exploding-gradients (gradients.cc). `after` some steps: what
// begins with weights of zero has its first gradients then.
DoctorFindings GradientFindings(const Probe& before, const Probe& after);

// probabilities-as-logits, logits-as-probabilities, constant-output (outputs.cc). `after` has no
// output where nothing was learned.
DoctorFindings OutputFindings(const Probe& before, const Probe& after, const LossPart& part,
                              const std::string& last_operator);

// loss-not-finite, loss-stuck, rate-too-high, rate-too-low (learning.cc). The first trial is with
// the rate of the recipe, the others with RatesToTry, up to the first that IsRemedy.
DoctorFindings LearningFindings(const std::vector<Trial>& trials);
// Whether one of them learned the batch.
bool BatchIsLearned(const std::vector<Trial>& trials);
// Factors of the rate, to be tried in this order; none where the first trial learns.
std::vector<double> RatesToTry(const Trial& first);
// Whether the rate was what kept the first trial from learning.
bool IsRemedy(const Trial& first, const Trial& other);

}  // namespace onward

#endif  // ONWARD_TRAINER_DOCTOR_CHECKS_H_
