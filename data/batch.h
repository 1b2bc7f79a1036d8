// SPDX-License-Identifier: Apache-2.0
// Batches of a data set in a repeatable order: the order of an epoch depends on
// the seed and the epoch's number alone, and a position can be read and set, so
// a run that stops can continue with the very batch it would have taken next.
#ifndef ONWARD_DATA_BATCH_H_
#define ONWARD_DATA_BATCH_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/permutation.h"

namespace onward {

// Where the next batch begins: `index` examples of `epoch` have been taken.
struct BatchPosition {
  int64_t epoch = 0;
  int64_t index = 0;
  friend bool operator==(const BatchPosition&, const BatchPosition&) = default;
};

struct BatchOptions {
  int64_t batch_size = 32;
  bool shuffle = true;
  uint64_t seed = 0;
  // Training leaves out a short last batch, so that every step has one shape;
  // evaluation takes it.
  bool drop_last = true;
};

struct Batch {
  std::vector<Tensor> tensors;   // in the order of Dataset::fields()
  std::vector<int64_t> indices;  // examples of the data set
  BatchPosition position;        // where it began
  bool last_of_epoch = false;
};

class BatchSource {
 public:
  // An error if the batch size is below 1, or if drop_last leaves no batch.
  static absl::StatusOr<BatchSource> Create(std::shared_ptr<const Dataset> dataset,
                                            const BatchOptions& options);

  // The next batch; after an epoch's last batch comes the first of the next
  // epoch, without end. Tensors in *batch are reused.
  absl::Status Next(Batch* batch);

  int64_t batches_per_epoch() const;
  const Dataset& dataset() const { return *dataset_; }
  const BatchOptions& options() const { return options_; }

  const BatchPosition& position() const { return position_; }
  // An error for a position outside the data set.
  absl::Status SetPosition(const BatchPosition& position);

 private:
  BatchSource(std::shared_ptr<const Dataset> dataset, const BatchOptions& options)
      : dataset_(std::move(dataset)), options_(options) {}
  // Moves to the next epoch where no batch is left in this one.
  void Normalize();

  std::shared_ptr<const Dataset> dataset_;
  BatchOptions options_;
  BatchPosition position_;
  std::vector<int64_t> order_;  // of epoch order_epoch_
  int64_t order_epoch_ = -1;
};

}  // namespace onward

#endif  // ONWARD_DATA_BATCH_H_
