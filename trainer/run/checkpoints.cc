// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/checkpoints.h"

#include <chrono>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "trainer/run/class_labels.h"

namespace onward {
namespace {

constexpr double kSavesShare = 20;  // of the time between two epochs' checkpoints, one part

}  // namespace

double SteadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Checkpoints::Checkpoints(const TrainingModel* model, const TrainOptions& options, int64_t steps,
                         RunListener* listener)
    : model_(model),
      options_(options),
      listener_(listener),
      saved_(options.resumed),
      saved_at_(steps),
      saved_time_(SteadySeconds()) {
  std::error_code error;
  replaces_ = !options.resumed && std::filesystem::exists(options.output, error);
}

bool Checkpoints::IsDue(int64_t steps, bool epoch_ends) const {
  const double since = SteadySeconds() - saved_time_;
  if (options_.save_every > 0 && steps % options_.save_every == 0) return true;
  return since >= (epoch_ends ? kSavesShare * cost_ : options_.save_seconds);
}

void Checkpoints::SaveOrGoOn(int64_t steps, const BatchPosition& position) {
  const absl::Status saved = Save(steps, position);
  if (saved.ok()) return;
  saved_time_ = SteadySeconds();
  listener_->OnNote(absl::StrCat("warning: step ", steps,
                                 " is not saved: ", std::string(saved.message()), "; going on"));
}

absl::Status Checkpoints::Save(int64_t steps, const BatchPosition& position) {
  if (steps == saved_at_) return absl::OkStatus();
  const double begin = SteadySeconds();
  ONWARD_ASSIGN_OR_RETURN(Model out, model_->Export());
  StoreClasses(classes_, &out);
  out.SetMetadata(kMetaSteps, absl::StrCat(steps));
  out.SetMetadata(kMetaEpoch, absl::StrCat(position.epoch));
  out.SetMetadata(kMetaIndex, absl::StrCat(position.index));
  out.SetMetadata(kMetaDataSeed, absl::StrCat(options_.seed));
  out.SetMetadata(kMetaBatch, absl::StrCat(options_.batch));
  out.SetMetadata(kMetaShuffle, options_.shuffle ? "1" : "0");
  for (const auto& [key, value] : notes_) out.SetMetadata(key, value);
  ONWARD_RETURN_IF_ERROR(WriteModel(out, options_.output, options_.write));
  saved_ = true;
  saved_at_ = steps;
  saved_time_ = SteadySeconds();
  cost_ = saved_time_ - begin;
  listener_->OnCheckpoint({steps, options_.output, cost_});
  return absl::OkStatus();
}

}  // namespace onward
