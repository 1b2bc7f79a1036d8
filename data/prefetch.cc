// SPDX-License-Identifier: Apache-2.0
#include "data/prefetch.h"

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

#include "core/base/parallel.h"
#include "core/base/status.h"

namespace onward {
namespace {

// Parts of a batch for each thread, so that they end together.
constexpr int64_t kPartsPerWorker = 4;

// Rows [begin, end) of a batch, as tensors that share its memory.
std::vector<Tensor> PartOf(const std::vector<FieldInfo>& fields, std::vector<Tensor>& batch,
                           int64_t begin, int64_t end) {
  std::vector<Tensor> part;
  for (size_t k = 0; k < fields.size(); ++k) {
    const auto skipped = static_cast<size_t>(begin * fields[k].shape.elements());
    void* data = fields[k].dtype == DType::kString
                     ? static_cast<void*>(batch[k].data<std::string>() + skipped)
                     : batch[k].data<char>() + skipped * DTypeBits(fields[k].dtype) / 8;
    part.emplace_back(fields[k].dtype, BatchShape(end - begin, fields[k].shape), data, nullptr);
  }
  return part;
}

}  // namespace

Prefetcher::Prefetcher(std::shared_ptr<const Dataset> dataset, int workers, bool vary)
    : dataset_(std::move(dataset)),
      fields_(dataset_->fields()),
      vary_(vary),
      in_parts_(dataset_->rows_are_independent()),
      ahead_(in_parts_ ? 2 : static_cast<size_t>(std::clamp(workers, 2, 4))),
      workers_(std::max(workers, 1)) {
  for (int i = 0; i < workers; ++i) {
    try {
      threads_.emplace_back([this] { Work(); });
    } catch (const std::system_error&) {
      break;  // as many as the system allows; Take does the work itself where there are none
    }
  }
}

Prefetcher::~Prefetcher() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Prefetcher::Order(FilledBatch batch) {
  auto task = std::make_unique<Task>();
  task->rows = static_cast<int64_t>(batch.indices.size());
  task->part = task->rows;
  if (in_parts_) {
    const int64_t parts = kPartsPerWorker * workers_;
    task->part = std::max<int64_t>(1, (task->rows + parts - 1) / parts);
    batch.tensors.resize(fields_.size());
    for (size_t k = 0; k < fields_.size(); ++k) {
      Tensor& t = batch.tensors[k];
      Shape shape = BatchShape(task->rows, fields_[k].shape);
      if (t.dtype() != fields_[k].dtype || t.shape() != shape) {
        t = Tensor(fields_[k].dtype, std::move(shape));
      }
    }
  }
  task->batch = std::move(batch);
  {
    std::lock_guard lock(mutex_);
    orders_.push_back(std::move(task));
  }
  work_.notify_all();
}

Prefetcher::Task* Prefetcher::NextTask() {
  for (const auto& task : orders_) {
    if (task->begun < task->rows) return task.get();
  }
  return nullptr;
}

absl::Status Prefetcher::FillFrom(absl::Span<const int64_t> indices,
                                  absl::Span<const uint64_t> keys,
                                  std::vector<Tensor>* tensors) const {
  return vary_ ? dataset_->FillVaried(indices, keys, tensors) : dataset_->Fill(indices, tensors);
}

absl::Status Prefetcher::Fill(Task& task, int64_t begin, int64_t end) const {
  FilledBatch& batch = task.batch;
  try {
    if (!in_parts_) return FillFrom(batch.indices, batch.keys, &batch.tensors);
    const auto first = static_cast<size_t>(begin), count = static_cast<size_t>(end - begin);
    std::vector<Tensor> part = PartOf(fields_, batch.tensors, begin, end);
    const std::vector<Tensor> expected = part;
    absl::Span<const uint64_t> keys = batch.keys;
    if (vary_) keys = keys.subspan(first, count);
    ONWARD_RETURN_IF_ERROR(
        FillFrom(absl::MakeConstSpan(batch.indices).subspan(first, count), keys, &part));
    for (size_t k = 0; k < part.size(); ++k) {
      CheckInvariant(k < expected.size() && part[k].raw() == expected[k].raw(),
                     "a data set fills batches as its fields say");
    }
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory while reading a batch");
  }
}

void Prefetcher::Work() {
  SetThreads(1);  // of loops on this thread: the team belongs to the step
  std::unique_lock lock(mutex_);
  while (true) {
    Task* task = nullptr;
    work_.wait(lock, [&] { return stop_ || (task = NextTask()) != nullptr; });
    if (stop_) return;
    const int64_t begin = task->begun;
    const int64_t end = std::min(begin + task->part, task->rows);
    task->begun = end;
    ++busy_;
    lock.unlock();
    const absl::Status status = Fill(*task, begin, end);
    lock.lock();
    --busy_;
    if (!status.ok() && (task->failed_at < 0 || begin < task->failed_at)) {
      task->failed_at = begin;
      task->status = status;
    }
    task->done += end - begin;
    filled_.notify_all();
  }
}

absl::Status Prefetcher::Take(FilledBatch* batch) {
  std::unique_lock lock(mutex_);
  Task& task = *orders_.front();
  if (threads_.empty()) {
    task.status = Fill(task, 0, task.rows);
  } else {
    filled_.wait(lock, [&] { return task.done == task.rows; });
  }
  const absl::Status status = task.status;
  *batch = std::move(task.batch);
  orders_.pop_front();
  return status;
}

void Prefetcher::Clear() {
  std::unique_lock lock(mutex_);
  for (const auto& task : orders_) task->begun = task->rows;  // nothing more is begun
  filled_.wait(lock, [&] { return busy_ == 0; });
  orders_.clear();
}

}  // namespace onward
