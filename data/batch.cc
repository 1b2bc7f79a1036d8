// SPDX-License-Identifier: Apache-2.0
#include "data/batch.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "data/random.h"
#include "data/split.h"

namespace onward {
namespace {

// Who mixes (mixing.h) asks for it no more.
absl::Status CheckMixing(const Dataset& data, const BatchOptions& options) {
  if (!options.vary || !data.hints().mixes()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(data.source(),
                   ": mixup and cutmix need classes as labels and a loss that takes probabilities: "
                   "--loss cross_entropy:soft_labels=1"));
}

}  // namespace

absl::StatusOr<BatchSource> BatchSource::Create(std::shared_ptr<const Dataset> dataset,
                                                const BatchOptions& options) {
  if (options.batch_size < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch size ", options.batch_size, ": expected a number from 1"));
  }
  const int64_t size = dataset->size();
  if (size < 1) return absl::InvalidArgumentError("the data set holds no examples");
  if (options.drop_last && size < options.batch_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("the data set has ", size, " examples, fewer than one batch of ",
                     options.batch_size, "; use a batch size of at most ", size));
  }
  ONWARD_RETURN_IF_ERROR(CheckMixing(*dataset, options));
  BatchSource source(std::move(dataset), options);
  if (options.balance || (options.vary && source.dataset_->hints().balance)) {
    source.labels_ = source.dataset_->class_labels();
    if (!source.labels_.defined() || source.labels_.elements() != size || !options.shuffle) {
      return absl::InvalidArgumentError(absl::StrCat(
          source.dataset_->source(), ": balancing classes needs ",
          options.shuffle ? "one class for each example" : "examples in a random order"));
    }
  }
  return source;
}

int64_t BatchSource::batches_per_epoch() const {
  const int64_t size = dataset_->size(), batch = options_.batch_size;
  return size / batch + (!options_.drop_last && size % batch != 0);
}

void BatchSource::Normalize(BatchPosition* position) const {
  const int64_t left = dataset_->size() - position->index;
  if (left >= (options_.drop_last ? options_.batch_size : 1)) return;
  ++position->epoch;
  position->index = 0;
}

int64_t BatchSource::CountAt(const BatchPosition& position) const {
  return std::min(options_.batch_size, dataset_->size() - position.index);
}

BatchPosition BatchSource::After(const BatchPosition& position) const {
  BatchPosition next{position.epoch, position.index + CountAt(position)};
  Normalize(&next);
  return next;
}

absl::Status BatchSource::SetPosition(const BatchPosition& position) {
  if (position.epoch < 0 || position.index < 0 || position.index > dataset_->size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "position (epoch ", position.epoch, ", example ", position.index,
        ") does not fit a data set of ", dataset_->size(), " examples; is it another data set?"));
  }
  position_ = position;
  Normalize(&position_);
  if (prefetcher_ != nullptr) prefetcher_->Clear();
  return absl::OkStatus();
}

void BatchSource::PlanEpoch(int64_t epoch) {
  if (order_epoch_ == epoch) return;
  order_epoch_ = epoch;
  if (labels_.defined()) {
    order_ = BalancedOrder(labels_.values<int64_t>(), options_.seed, epoch);
    std::vector<int32_t> taken(order_.size(), 0);
    times_.clear();
    for (int64_t example : order_) times_.push_back(taken[example]++);
  } else if (options_.shuffle) {
    order_ = Permutation(dataset_->size(), options_.seed, epoch);
  } else if (order_.empty()) {
    order_.resize(dataset_->size());
    std::iota(order_.begin(), order_.end(), 0);
  }
}

void BatchSource::Plan(const BatchPosition& position, FilledBatch* batch) {
  PlanEpoch(position.epoch);
  const int64_t count = CountAt(position);
  const auto begin = order_.begin() + position.index;
  batch->indices.assign(begin, begin + count);
  batch->keys.clear();
  for (int64_t i = position.index; options_.vary && i < position.index + count; ++i) {
    batch->keys.push_back(
        ExampleKey(options_.seed, position.epoch, order_[i], times_.empty() ? 0 : times_[i]));
  }
}

int BatchSource::Workers() const {
  if (options_.workers != BatchOptions::kWorkersFromThreads) return options_.workers;
  return dataset_->reads_slowly() && Threads() > 1 ? Threads() : 0;
}

absl::Status BatchSource::NextNow(FilledBatch* batch) {
  Plan(position_, batch);
  if (!options_.vary) return dataset_->Fill(batch->indices, &batch->tensors);
  return dataset_->FillVaried(batch->indices, batch->keys, &batch->tensors);
}

absl::Status BatchSource::NextAhead(FilledBatch* batch) {
  const auto order = [&](FilledBatch reused) {
    Plan(ordered_, &reused);
    prefetcher_->Order(std::move(reused));
    ordered_ = After(ordered_);
  };
  if (prefetcher_->ordered() == 0) ordered_ = position_;
  while (prefetcher_->ordered() < prefetcher_->ahead()) order({});
  FilledBatch filled;
  ONWARD_RETURN_IF_ERROR(prefetcher_->Take(&filled));
  std::swap(*batch, filled);
  order(std::move(filled));
  return absl::OkStatus();
}

absl::Status BatchSource::Next(Batch* batch) {
  if (prefetcher_ == nullptr && Workers() > 0) {
    prefetcher_ = std::make_unique<Prefetcher>(dataset_, Workers(), options_.vary);
  }
  FilledBatch next;
  next.tensors = std::move(batch->tensors);
  const absl::Status status = prefetcher_ == nullptr ? NextNow(&next) : NextAhead(&next);
  if (!status.ok()) {
    if (prefetcher_ != nullptr) prefetcher_->Clear();
    return status;
  }
  batch->tensors = std::move(next.tensors);
  batch->indices = std::move(next.indices);
  batch->position = position_;
  position_ = After(position_);
  batch->last_of_epoch = position_.epoch != batch->position.epoch;
  return absl::OkStatus();
}

}  // namespace onward
