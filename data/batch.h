// SPDX-License-Identifier: Apache-2.0
// Batches of a data set in a repeatable order: the order of an epoch and the variations of its
// examples depend on the seed and the epoch's number alone, and a position can be read and set,
// so a run that stops can continue with the very batch it would have taken next. Where reading
// takes time, threads do it ahead; they change no batch and no position.
#ifndef ONWARD_DATA_BATCH_H_
#define ONWARD_DATA_BATCH_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/permutation.h"
#include "data/prefetch.h"

namespace onward {

// Where the next batch begins: `index` examples of `epoch` have been taken.
struct BatchPosition {
  int64_t epoch = 0;
  int64_t index = 0;
  friend bool operator==(const BatchPosition&, const BatchPosition&) = default;
};

struct BatchOptions {
  static constexpr int kWorkersFromThreads = -1;

  int64_t batch_size = 32;
  bool shuffle = true;
  uint64_t seed = 0;
  // Leaves out a short last batch, so that all have one shape.
  bool drop_last = true;
  // Training takes random variations of the examples, evaluation the examples themselves.
  bool vary = true;
  // Classes equally often, as TrainingHints::balance asks for too.
  bool balance = false;
  // Threads that read ahead; 0: none. By default as many as compute where the data set reads
  // slowly and there are two of these at least.
  int workers = kWorkersFromThreads;
};

struct Batch {
  std::vector<Tensor> tensors;   // in the order of Dataset::fields()
  std::vector<int64_t> indices;  // examples of the data set
  BatchPosition position;        // where it began
  bool last_of_epoch = false;
};

class BatchSource {
 public:
  // An error if the batch size is below 1, if drop_last leaves no batch, or if classes are to
  // be balanced where examples do not have one each.
  static absl::StatusOr<BatchSource> Create(std::shared_ptr<const Dataset> dataset,
                                            const BatchOptions& options);

  // The next batch; after an epoch's last batch comes the first of the next
  // epoch, without end. Tensors in *batch are reused. After an error the position is that of
  // the batch that could not be had.
  absl::Status Next(Batch* batch);

  int64_t batches_per_epoch() const;
  const Dataset& dataset() const { return *dataset_; }
  const BatchOptions& options() const { return options_; }

  // Of the batch that Next returns, whatever has been read ahead.
  const BatchPosition& position() const { return position_; }
  // An error for a position outside the data set.
  absl::Status SetPosition(const BatchPosition& position);

 private:
  BatchSource(std::shared_ptr<const Dataset> dataset, const BatchOptions& options)
      : dataset_(std::move(dataset)), options_(options) {}
  // Moves to the next epoch where no batch is left in this one.
  void Normalize(BatchPosition* position) const;
  BatchPosition After(const BatchPosition& position) const;
  int64_t CountAt(const BatchPosition& position) const;
  // Decides which examples the batch at a position has.
  void Plan(const BatchPosition& position, FilledBatch* batch);
  void PlanEpoch(int64_t epoch);
  int Workers() const;
  absl::Status NextAhead(FilledBatch* batch);
  absl::Status NextNow(FilledBatch* batch);

  std::shared_ptr<const Dataset> dataset_;
  BatchOptions options_;
  BatchPosition position_;
  std::vector<int64_t> order_;  // of epoch order_epoch_
  std::vector<int32_t> times_;  // which time an epoch takes an example, where it does so again
  int64_t order_epoch_ = -1;
  Tensor labels_;                           // where classes are balanced
  std::unique_ptr<Prefetcher> prefetcher_;  // from the first batch on
  BatchPosition ordered_;                   // what it will be asked for next
};

}  // namespace onward

#endif  // ONWARD_DATA_BATCH_H_
