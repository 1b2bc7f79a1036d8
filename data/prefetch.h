// SPDX-License-Identifier: Apache-2.0
// Batches that are filled ahead of whoever takes them, by threads of their own. What is in a
// batch was decided when it was ordered, so threads change nothing but the time.
#ifndef ONWARD_DATA_PREFETCH_H_
#define ONWARD_DATA_PREFETCH_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "data/dataset.h"

namespace onward {

// Which examples, in which variations, and after filling their tensors.
struct FilledBatch {
  std::vector<int64_t> indices;
  std::vector<uint64_t> keys;
  std::vector<Tensor> tensors;  // reused where they fit
};

// Used by one thread.
class Prefetcher {
 public:
  // Without `vary` keys are not looked at.
  Prefetcher(std::shared_ptr<const Dataset> dataset, int workers, bool vary);
  // Waits for what the threads are just doing, at most an example each.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // How many batches to order ahead: enough to keep the threads busy.
  size_t ahead() const { return ahead_; }
  size_t ordered() const { return orders_.size(); }

  void Order(FilledBatch batch);
  // The batch ordered first, waiting until it is filled; an error is that of its first example
  // that has one. There has to be one.
  absl::Status Take(FilledBatch* batch);
  // Forgets what is ordered.
  void Clear();

 private:
  // Rows [begin, end) of `batch` are handed out in parts.
  struct Task {
    FilledBatch batch;
    int64_t rows = 0, part = 0;  // in all; at a time
    int64_t begun = 0, done = 0;
    int64_t failed_at = -1;  // the first row of the first part that failed
    absl::Status status;
  };

  void Work();
  absl::Status Fill(Task& task, int64_t begin, int64_t end) const;
  absl::Status FillFrom(absl::Span<const int64_t> indices, absl::Span<const uint64_t> keys,
                        std::vector<Tensor>* tensors) const;
  Task* NextTask();

  std::shared_ptr<const Dataset> dataset_;
  std::vector<FieldInfo> fields_;
  bool vary_, in_parts_;
  size_t ahead_;
  int workers_;

  std::mutex mutex_;
  std::condition_variable work_, filled_;
  std::deque<std::unique_ptr<Task>> orders_;
  int busy_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace onward

#endif  // ONWARD_DATA_PREFETCH_H_
