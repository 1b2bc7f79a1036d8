// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/checkpoints.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/atomic_file.h"
#include "core/base/spec.h"
#include "core/base/status.h"
#include "core/onnx_io/companions.h"
#include "trainer/run/class_labels.h"

namespace onward {
namespace {

namespace fs = std::filesystem;

constexpr double kSavesShare = 20;  // of the time between two epochs' checkpoints, one part
constexpr char kStepMark[] = ".step-", kEnding[] = ".onnx";

// The steps that are kept beside `output`, up to `steps`: those after it are of another run.
std::vector<int64_t> KeptSteps(const std::string& output, int64_t steps) {
  const fs::path path(output);
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const std::string prefix = absl::StrCat(path.stem().string(), kStepMark);
  std::vector<int64_t> kept;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    absl::string_view number = name;
    int64_t step = 0;
    if (absl::ConsumePrefix(&number, prefix) && absl::ConsumeSuffix(&number, kEnding) &&
        absl::SimpleAtoi(number, &step) && step <= steps && KeptPath(output, step) == it->path()) {
      kept.push_back(step);
    }
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

// The figure of a file that holds the best so far, if it is such a file.
std::optional<double> BestIn(const std::string& path, Metric metric) {
  const auto file = ReadModel(path);
  if (!file.ok()) return std::nullopt;
  const std::vector<std::string> words = absl::StrSplit(file->Metadata(kMetaBest), ' ');
  double value = 0;
  if (words.size() != 2 || words[0] != MetricName(metric) || !absl::SimpleAtod(words[1], &value)) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

double SteadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string KeptPath(const std::string& output, int64_t steps) {
  const fs::path path(output);
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  return (folder / absl::StrCat(path.stem().string(), kStepMark, steps, kEnding)).string();
}

Checkpoints::Checkpoints(const TrainOptions& options, int64_t steps, std::string has_best,
                         RunListener* listener)
    : options_(options),
      listener_(listener),
      saved_(options.resumed),
      has_best_(has_best == kHasBest),
      saved_at_(steps),
      saved_time_(SteadySeconds()) {
  std::error_code error;
  replaces_ = !options.resumed && fs::exists(options.output, error);
  const bool replaces_best = !options.resumed && fs::exists(options.best, error);
  Note(kMetaHasBest, replaces_best ? std::string(kReplacesBest) : std::move(has_best));
}

bool Checkpoints::IsDue(int64_t steps, bool epoch_ends) const {
  if (options_.output.empty()) return false;
  const double since = SteadySeconds() - saved_time_;
  if (options_.save_every > 0 && steps % options_.save_every == 0) return true;
  return since >= (epoch_ends ? kSavesShare * cost_ : options_.save_seconds);
}

void Checkpoints::SaveOrGoOn(const TrainingModel& model, int64_t steps,
                             const BatchPosition& position) {
  const absl::Status saved = Save(model, steps, position);
  if (saved.ok()) return;
  saved_time_ = SteadySeconds();
  listener_->OnNote(
      {absl::StrCat("step ", steps, " is not saved: ", std::string(saved.message()), "; going on"),
       true, steps});
}

absl::StatusOr<Model> Checkpoints::Described(const TrainingModel& model, int64_t steps,
                                             const BatchPosition& position) const {
  ONWARD_ASSIGN_OR_RETURN(Model out, model.Export());
  StoreClasses(classes_, &out);
  out.SetMetadata(kMetaSteps, absl::StrCat(steps));
  out.SetMetadata(kMetaEpoch, absl::StrCat(position.epoch));
  out.SetMetadata(kMetaIndex, absl::StrCat(position.index));
  out.SetMetadata(kMetaDataSeed, absl::StrCat(options_.seed));
  out.SetMetadata(kMetaBatch, absl::StrCat(options_.batch));
  out.SetMetadata(kMetaShuffle, options_.shuffle ? "1" : "0");
  out.SetMetadata(kMetaBalance, options_.balance ? "1" : "");
  out.SetMetadata(kMetaDropLast, options_.drop_last ? "1" : "0");
  out.SetMetadata(kMetaBest, "");
  if (!options_.model_fingerprint.empty()) {
    out.SetMetadata(kMetaModelPrint, options_.model_fingerprint);
  }
  // In the same order whenever a run was stopped: what came first stands first otherwise.
  for (const auto& [key, value] : notes_) out.SetMetadata(key, "");
  for (const auto& [key, value] : notes_) out.SetMetadata(key, value);
  return out;
}

absl::Status Checkpoints::Save(const TrainingModel& model, int64_t steps,
                               const BatchPosition& position) {
  if (steps == saved_at_ || options_.output.empty()) return absl::OkStatus();
  const double begin = SteadySeconds();
  ONWARD_ASSIGN_OR_RETURN(const Model out, Described(model, steps, position));
  ONWARD_RETURN_IF_ERROR(WriteModel(out, options_.output, options_.write));
  saved_ = true;
  saved_at_ = steps;
  saved_time_ = SteadySeconds();
  cost_ = saved_time_ - begin;
  listener_->OnCheckpoint({steps, options_.output, cost_});
  return options_.keep > 0 ? KeepCopy(steps) : absl::OkStatus();
}

absl::Status Checkpoints::KeepCopy(int64_t steps) const {
  ONWARD_ASSIGN_OR_RETURN(const std::string target, WriteTarget(options_.output));
  const std::string kept = KeptPath(target, steps);
  std::error_code error;
  fs::remove(kept, error);
  // The checkpoint is replaced, never changed: another name for it is a copy.
  fs::create_hard_link(target, kept, error);
  if (error) fs::copy_file(target, kept, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("'", kept, "' cannot be written: ", error.message()));
  }
  std::vector<int64_t> all = KeptSteps(target, steps);
  if (static_cast<int64_t>(all.size()) <= options_.keep) return absl::OkStatus();
  all.resize(all.size() - static_cast<size_t>(options_.keep));
  for (const int64_t old : all) fs::remove(KeptPath(target, old), error);
  RemoveUnusedCompanions(target);
  return absl::OkStatus();
}

absl::Status Checkpoints::OfferBest(const TrainingModel& model, int64_t steps,
                                    const BatchPosition& position, Metric metric, double value) {
  if (options_.best.empty() || std::isnan(value)) return absl::OkStatus();
  // What is there before this run has written a best is of another, also when a run that was
  // killed goes on.
  if (has_best_ && !best_.has_value()) best_ = BestIn(options_.best, metric);
  const bool better =
      !best_.has_value() || (HigherIsBetter(metric) ? value > *best_ : value < *best_);
  if (!better) return absl::OkStatus();
  const double begin = SteadySeconds();
  ONWARD_ASSIGN_OR_RETURN(Model out, Described(model, steps, position));
  out.SetMetadata(kMetaBest, absl::StrCat(MetricName(metric), " ", ExactText(value)));
  ONWARD_RETURN_IF_ERROR(WriteModel(out, options_.best, options_.write));
  best_ = value;
  if (!has_best_) {
    has_best_ = true;
    Note(kMetaHasBest, kHasBest);
    Changed();
  }
  listener_->OnCheckpoint({steps, options_.best, SteadySeconds() - begin});
  return absl::OkStatus();
}

}  // namespace onward
