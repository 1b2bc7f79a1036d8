// SPDX-License-Identifier: Apache-2.0
#include "data/batch.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace onward {

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
  return BatchSource(std::move(dataset), options);
}

int64_t BatchSource::batches_per_epoch() const {
  const int64_t size = dataset_->size(), batch = options_.batch_size;
  return size / batch + (!options_.drop_last && size % batch != 0);
}

void BatchSource::Normalize() {
  const int64_t left = dataset_->size() - position_.index;
  if (left >= (options_.drop_last ? options_.batch_size : 1)) return;
  ++position_.epoch;
  position_.index = 0;
}

absl::Status BatchSource::SetPosition(const BatchPosition& position) {
  if (position.epoch < 0 || position.index < 0 || position.index > dataset_->size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "position (epoch ", position.epoch, ", example ", position.index,
        ") does not fit a data set of ", dataset_->size(), " examples; is it another data set?"));
  }
  position_ = position;
  Normalize();
  return absl::OkStatus();
}

absl::Status BatchSource::Next(Batch* batch) {
  if (order_epoch_ != position_.epoch) {
    if (options_.shuffle) {
      order_ = Permutation(dataset_->size(), options_.seed, position_.epoch);
    } else if (order_.empty()) {
      order_.resize(dataset_->size());
      std::iota(order_.begin(), order_.end(), 0);
    }
    order_epoch_ = position_.epoch;
  }
  const int64_t count = std::min(options_.batch_size, dataset_->size() - position_.index);
  const auto begin = order_.begin() + position_.index;
  batch->indices.assign(begin, begin + count);
  ONWARD_RETURN_IF_ERROR(dataset_->Fill(batch->indices, &batch->tensors));
  batch->position = position_;
  position_.index += count;
  Normalize();
  batch->last_of_epoch = position_.epoch != batch->position.epoch;
  return absl::OkStatus();
}

}  // namespace onward
