// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/find_rate.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "trainer/run/prepared_run.h"
#include "training_info/rate.h"

namespace onward {
namespace {

constexpr int kTrials = 100;
constexpr double kLowest = 1e-7, kHighest = 10;
constexpr double kDecay = 0.9;  // of the mean that smooths the losses
constexpr double kLeaves = 4;   // times the least loss: it will not come back

}  // namespace

absl::Status PrepareForSearch(const Environment& environment, Model* model) {
  ONWARD_RETURN_IF_ERROR(ReplaceRate(1, ScheduleSpec(), environment, model));
  return AddRateFactor(environment, model);
}

double SuggestRate(const std::vector<RateTrial>& curve) {
  // The longest subsequence of falling losses that ends at each trial.
  std::vector<size_t> length(curve.size(), 1);
  size_t end = 0;
  for (size_t i = 1; i < curve.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (curve[i].smoothed < curve[j].smoothed) length[i] = std::max(length[i], length[j] + 1);
    }
    if (length[i] > length[end]) end = i;
  }
  const size_t begin = end - std::min(end, length[end]);
  const double section = static_cast<double>(end - begin) / 3;
  return curve[begin + static_cast<size_t>(section) + static_cast<size_t>(section / 2)].rate;
}

absl::StatusOr<RateSearch> FindRate(TrainingModel* model, std::shared_ptr<const Dataset> data,
                                    TrainOptions options, const std::atomic<bool>* cancel) {
  // Nothing is evaluated.
  options.patience = 0;
  options.best.clear();
  ONWARD_ASSIGN_OR_RETURN(PreparedRun run,
                          PrepareRun(model, std::move(data), nullptr, RunListener(), options));
  RateSearch search;
  SmoothedMean smoothed(kDecay);
  Batch batch;
  for (int k = 0; k < kTrials; ++k) {
    RateTrial trial;
    trial.rate = kLowest * std::pow(kHighest / kLowest, static_cast<double>(k) / (kTrials - 1));
    SetRateFactor(trial.rate, model);
    ONWARD_RETURN_IF_ERROR(run.source->Next(&batch));
    ONWARD_ASSIGN_OR_RETURN(const TensorMap feeds, run.feeding->Feeds(batch.tensors));
    auto outputs = model->Step(feeds, run.wanted, cancel);
    // Numbers that are not finite: the rate is too large.
    if (outputs.status().code() == absl::StatusCode::kOutOfRange) break;
    if (!outputs.ok()) return outputs.status();
    const auto loss = outputs->find(run.losses.sum);
    if (loss == outputs->end() || loss->second.elements() == 0) {
      return absl::InvalidArgumentError("the file does not say which value is its loss");
    }
    ONWARD_ASSIGN_OR_RETURN(const std::vector<double> values, ToDoubles(loss->second));
    trial.loss = values[0];
    smoothed.Add(trial.loss);
    trial.smoothed = smoothed.mean();
    search.curve.push_back(trial);
    if (k == 0 || trial.smoothed < search.least.smoothed) search.least = trial;
    if (trial.smoothed > kLeaves * std::abs(search.least.smoothed) && k > 0) break;
  }
  if (search.curve.empty()) {
    return absl::OutOfRangeError(
        absl::StrCat("the first step, with the rate ", kLowest, ", has no finite numbers"));
  }
  search.suggested = SuggestRate(search.curve);
  return search;
}

}  // namespace onward
