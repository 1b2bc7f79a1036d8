// SPDX-License-Identifier: Apache-2.0
// When a run is saved, where, and what its files say of it.
#ifndef ONWARD_TRAINER_RUN_CHECKPOINTS_H_
#define ONWARD_TRAINER_RUN_CHECKPOINTS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/batch.h"
#include "trainer/run/listener.h"
#include "trainer/run/options.h"
#include "training_info/step.h"

namespace onward {

// Seconds of a clock that only goes forward.
double SteadySeconds();

// Where a checkpoint that is kept goes: beside `output`, as NAME.step-STEPS.onnx.
std::string KeptPath(const std::string& output, int64_t steps);

class Checkpoints {
 public:
  // `steps` are done; a resumed run is in its file as it is, which says `has_best` (kMetaHasBest).
  // All outlive this.
  Checkpoints(const TrainOptions& options, int64_t steps, std::string has_best,
              RunListener* listener);

  // What the file calls its classes; none: nothing.
  void set_classes(std::vector<std::string> classes) { classes_ = std::move(classes); }
  // Metadata that the next checkpoints carry; "": not any more.
  void Note(const std::string& key, std::string value) { notes_[key] = std::move(value); }
  // The file does not hold the present state any more, although no step was made.
  void Changed() { saved_at_ = -1; }

  bool IsDue(int64_t steps, bool epoch_ends) const;
  // Nothing to do where the file holds this very step.
  absl::Status Save(const TrainingModel& model, int64_t steps, const BatchPosition& position);
  // A disk that is full now may not be so at the end; the state in memory is worth more.
  void SaveOrGoOn(const TrainingModel& model, int64_t steps, const BatchPosition& position);
  // Writes the file of the best where this is better than what it holds.
  absl::Status OfferBest(const TrainingModel& model, int64_t steps, const BatchPosition& position,
                         Metric metric, double value);

  // Whether the file holds this run, or does so once this run replaces that of another.
  bool saved() const { return saved_; }
  bool replaces_other() const { return replaces_; }

 private:
  absl::StatusOr<Model> Described(const TrainingModel& model, int64_t steps,
                                  const BatchPosition& position) const;
  absl::Status KeepCopy(int64_t steps) const;

  const TrainOptions& options_;
  RunListener* listener_;
  std::vector<std::string> classes_;
  std::map<std::string, std::string> notes_;
  bool replaces_ = false;  // the file is there, of another run
  bool saved_ = false;
  bool has_best_ = false;  // the file of the best is of this run
  std::optional<double> best_;
  int64_t saved_at_ = 0;  // the step that the file holds, or where this run began
  double saved_time_ = 0, cost_ = 0;
};

}  // namespace onward

#endif  // ONWARD_TRAINER_RUN_CHECKPOINTS_H_
