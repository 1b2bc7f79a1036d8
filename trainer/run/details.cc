// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/details.h"

#include "absl/strings/str_cat.h"

namespace onward {
namespace {

// The steps of a run, from 0, whose operators are timed: those before still look for memory, and
// tell how long the run will take.
constexpr int64_t kFirstProfiled = 3, kProfiledSteps = 3;

}  // namespace

void RunDetails::BeforeStep(int64_t done, TrainingModel* model) {
  if (!wanted_) return;
  if (done >= kFirstProfiled && done < kFirstProfiled + kProfiledSteps) {
    profile_.BeginRun();
    model->set_on_kernel([this](const PlanStep& step, int64_t ns) { profile_.Add(step, ns); });
  } else {
    model->set_on_kernel(nullptr);
  }
}

// A run that learns is worth more than what is told of it: where there are no norms it goes on.
void RunDetails::MeasureNorms(int64_t step, const TensorMap& feeds, TrainingModel* model) {
  if (!measures_norms_) return;
  if (norms_ == nullptr) norms_ = std::make_unique<NormMeter>(*model);
  auto layers = norms_->Measure(feeds, model);
  if (!layers.ok()) {
    measures_norms_ = false;
    listener_->OnNote({absl::StrCat("the norms of gradients are not known: ",
                                    std::string(layers.status().message())),
                       false, step});
    return;
  }
  if (!layers->empty()) listener_->OnNorms({step, *std::move(layers)});
}

void RunDetails::Leave(TrainingModel* model) {
  if (wanted_) model->set_on_kernel(nullptr);
  norms_.reset();
}

}  // namespace onward
