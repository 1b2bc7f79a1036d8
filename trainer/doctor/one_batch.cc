// SPDX-License-Identifier: Apache-2.0
#include "trainer/doctor/one_batch.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/base/status.h"
#include "training_info/rate.h"

namespace onward {
namespace {

// A loss that has grown by this part of itself does not come back in a few steps.
constexpr double kGrown = 0.5;

double BaseRate(const Model& model) {
  const absl::StatusOr<RateRecipe> recipe = StoredRate(model);
  return recipe.ok() ? recipe->optimizer.lr() : kNotMeasured;
}

}  // namespace

double Trial::last() const {
  if (losses.empty()) return kNotMeasured;
  const size_t count = std::max<size_t>(1, losses.size() / 5);
  return std::accumulate(losses.end() - static_cast<int64_t>(count), losses.end(), 0.0) /
         static_cast<double>(count);
}

double Trial::Progress() const {
  if (losses.empty() || first() == 0) return 0;
  return (first() - last()) / std::abs(first());
}

bool Trial::Diverged() const { return !broke.empty() || !(Progress() >= -kGrown); }

bool MakeRateAdjustable(const Environment& environment, Model* model) {
  const absl::StatusOr<RateRecipe> recipe = StoredRate(*model);
  if (!recipe.ok()) return false;
  Model changed = *model;
  const absl::Status status =
      ReplaceRate(recipe->optimizer.lr(), ScheduleSpec(), environment, &changed);
  if (!status.ok() || !AddRateFactor(environment, &changed).ok()) return false;
  *model = std::move(changed);
  return true;
}

OneBatch::OneBatch(TrainingModel* model, TensorMap feeds, std::string loss, int64_t steps)
    : model_(model),
      feeds_(std::move(feeds)),
      loss_(std::move(loss)),
      steps_(steps),
      random_(model->random()),
      factor_(RateFactor(*model)),
      rate_(factor_ * BaseRate(model->model())) {
  for (const auto& [name, tensor] : std::as_const(*model).variables()) {
    start_.emplace(name, tensor.Clone());
  }
}

void OneBatch::Restore() {
  for (auto& [name, tensor] : model_->variables()) {
    std::memcpy(tensor.raw(), start_.at(name).raw(), tensor.bytes());
  }
  model_->set_random(random_);
}

absl::StatusOr<Trial> OneBatch::Try(double factor, const std::atomic<bool>* cancel) {
  Restore();
  if (factor != 1) SetRateFactor(factor * factor_, model_);
  Trial trial{.rate = factor * rate_};
  for (int64_t k = 0; k < steps_; ++k) {
    const auto values = model_->Step(feeds_, {loss_}, cancel);
    // A step whose numbers are not finite assigns nothing.
    if (values.status().code() == absl::StatusCode::kOutOfRange) {
      trial.broke = std::string(values.status().message());
      break;
    }
    if (!values.ok()) return values.status();
    // An entry that sits out an iteration has no loss to tell.
    const auto loss = values->find(loss_);
    if (loss == values->end() || loss->second.elements() == 0) continue;
    ONWARD_ASSIGN_OR_RETURN(const std::vector<double> value, ToDoubles(loss->second));
    trial.losses.push_back(value.front());
  }
  return trial;
}

}  // namespace onward
