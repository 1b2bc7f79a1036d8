// SPDX-License-Identifier: Apache-2.0
// Why a model does not learn: looks at data and model, trains a copy on one batch, and says what
// it finds. Nothing is written.
#ifndef ONWARD_TRAINER_DOCTOR_DOCTOR_H_
#define ONWARD_TRAINER_DOCTOR_DOCTOR_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/onnx_io/model.h"
#include "data/dataset.h"
#include "environment/environment.h"
#include "trainer/doctor/finding.h"
#include "trainer/doctor/one_batch.h"
#include "trainer/run/options.h"

namespace onward {

struct DoctorOptions {
  TrainOptions run;         // batch, seed and shuffling count
  int64_t steps = 50;       // on one batch
  int64_t batches = 4;      // that are looked at
  bool initialize = false;  // begin with newly drawn weights
};

struct DoctorReport {
  DoctorFindings findings = {};
  std::vector<std::string> notes = {};  // what the user should know, in sentences
  std::vector<Trial> trials = {};       // on one batch; the first with the rate of the recipe
  std::string not_examined = "";  // why it ended before the model was looked at; "" if it did not
};

// `model` carries its training. An error where it cannot be trained on the data and no finding
// tells why.
absl::StatusOr<DoctorReport> Diagnose(Model model, std::shared_ptr<const Dataset> data,
                                      DoctorOptions options, const Environment& environment,
                                      const std::atomic<bool>* cancel = nullptr);

}  // namespace onward

#endif  // ONWARD_TRAINER_DOCTOR_DOCTOR_H_
