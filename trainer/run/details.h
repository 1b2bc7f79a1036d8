// SPDX-License-Identifier: Apache-2.0
// What a run tells of itself where a listener wants details: the time of operators and the norms
// of layers. It changes no number of the run, and costs nothing where nobody wants it.
#ifndef ONWARD_TRAINER_RUN_DETAILS_H_
#define ONWARD_TRAINER_RUN_DETAILS_H_

#include <memory>
#include <utility>
#include <vector>

#include "trainer/report/numbers/profile.h"
#include "trainer/run/listener.h"
#include "trainer/run/norms.h"

namespace onward {

class RunDetails {
 public:
  // `norms` of the model that the run begins with, or null.
  RunDetails(RunListener* listener, std::unique_ptr<NormMeter> norms)
      : listener_(listener),
        wanted_(listener->wants_details()),
        measures_norms_(wanted_),
        norms_(std::move(norms)) {}

  bool wanted() const { return wanted_; }

  // Before a step of the model, where the run has made `done`: some of them are timed.
  void BeforeStep(int64_t done, TrainingModel* model);
  // After step `step`, which was fed this.
  void MeasureNorms(int64_t step, const TensorMap& feeds, TrainingModel* model);
  // The run is done with this model.
  void Leave(TrainingModel* model);

  // The slowest first.
  std::vector<OperatorTime> Operators() const { return profile_.PerRun(); }

 private:
  RunListener* listener_;
  bool wanted_, measures_norms_;
  std::unique_ptr<NormMeter> norms_;  // of the present model, from the first measurement on
  Profile profile_;
};

}  // namespace onward

#endif  // ONWARD_TRAINER_RUN_DETAILS_H_
