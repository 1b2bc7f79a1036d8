// SPDX-License-Identifier: Apache-2.0
// How a run is to go, and what its file says of it.
#ifndef ONWARD_TRAINER_RUN_OPTIONS_H_
#define ONWARD_TRAINER_RUN_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/onnx_io/model.h"
#include "trainer/run/evaluate.h"

namespace onward {

// Metadata that a checkpoint carries beside the standard's own fields.
inline constexpr char kMetaSteps[] = "onward.steps";
inline constexpr char kMetaEpoch[] = "onward.data_epoch";
inline constexpr char kMetaIndex[] = "onward.data_index";
inline constexpr char kMetaDataSeed[] = "onward.data_seed";
inline constexpr char kMetaBatch[] = "onward.batch";
inline constexpr char kMetaShuffle[] = "onward.shuffle";  // 0: examples in their order
inline constexpr char kMetaBalance[] = "onward.balance";  // 1: classes are taken equally often
// 1: the short batch at the end of an epoch is left out, as it is where nothing is said.
inline constexpr char kMetaDropLast[] = "onward.drop_last";
inline constexpr char kMetaSkipped[] = "onward.skipped_steps";  // their numbers were not finite
// What the model and the data of a run are known by (fingerprint.h).
inline constexpr char kMetaModelPrint[] = "onward.model_fingerprint";
inline constexpr char kMetaDataPrint[] = "onward.data_fingerprint";
// Of a file with the best evaluation: which figure that is, and its value.
inline constexpr char kMetaBest[] = "onward.best";
// Whether the run has written such a file.
inline constexpr char kMetaHasBest[] = "onward.has_best";
inline constexpr char kHasBest[] = "1";
inline constexpr char kReplacesBest[] = "0";  // not yet, and it was begun to replace one
// What tells runs apart (fingerprint.h).
inline constexpr char kMetaRun[] = "onward.run";
// 1: the evaluation that this step asks for is still to be done.
inline constexpr char kMetaEvaluationDue[] = "onward.evaluation_due";

// The whole number that the metadata hold; `otherwise` where they hold none.
int64_t MetadataInt(const Model& model, const char* key, int64_t otherwise = 0);

// What happens where a step has numbers that are not finite.
enum class OnNan {
  kStop,  // the run ends with an error, its file holds the last good state
  kSkip,  // the batch is left out
  kBack,  // to the last checkpoint, with half the rate (the model has a factor: rate.h)
};

struct TrainOptions {
  std::string output;  // where checkpoints go; empty: nowhere
  WriteOptions write;  // and how
  int64_t steps = 0;   // in all, resumed ones included; 0: epochs decide
  int64_t epochs = 1;
  int64_t batch = 64;
  uint64_t seed = 0;
  bool shuffle = true;
  bool balance = false;    // classes are taken equally often
  bool drop_last = false;  // leave out the short batch at the end of an epoch
  // A checkpoint is written after every epoch (unless the last one was so recent that
  // writing would take more than a twentieth of the time), after so many steps where that
  // is above 0, and where this many seconds have passed without one.
  int64_t save_every = 0;
  double save_seconds = 600;
  int64_t keep = 0;        // that many of the last checkpoints stay, each under a name of its own
  int64_t eval_every = 0;  // steps between evaluations; 0: after each epoch
  // What evaluations are compared by; by default the loss, or the accuracy where the schedule
  // looks for a maximum.
  std::optional<Metric> metric;
  std::string best;       // where the checkpoint with the best evaluation goes; empty: nowhere
  int64_t patience = 0;   // evaluations in a row that are no better end the run; 0: none do
  double time_limit = 0;  // seconds after which no step begins; 0: none
  OnNan on_nan = OnNan::kStop;
  std::string model_fingerprint;  // of the file that training began with; empty: as stored
  bool resumed = false;           // goes on where the model's metadata say it stopped
  bool check_all_data = false;    // before the first step, however much there is
  std::string command;            // RunFacts
  std::vector<ReportNote> told;   // RunFacts
};

// How many batches an epoch over so many examples has, and how many steps the run.
int64_t StepsPerEpoch(const TrainOptions& options, int64_t examples);
int64_t PlannedSteps(const TrainOptions& options, int64_t examples);

}  // namespace onward

#endif  // ONWARD_TRAINER_RUN_OPTIONS_H_
