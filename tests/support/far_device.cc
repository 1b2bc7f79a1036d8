// SPDX-License-Identifier: Apache-2.0
#include "tests/support/far_device.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "core/base/status.h"
#include "core/tensor/finite.h"

namespace onward {
namespace {

constexpr uintptr_t kFar = uintptr_t{1} << 62;  // no address that a program can have

void* Encoded(void* near) {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(near) | kFar);
}
bool IsFar(const void* pointer) { return (reinterpret_cast<uintptr_t>(pointer) & kFar) != 0; }
void* Near(const void* far) {
  CheckInvariant(far == nullptr || IsFar(far), "a pointer of the host on a far device");
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(far) & ~kFar);
}
Tensor Near(const Tensor& far) {
  return Tensor(far.dtype(), far.shape(), Near(far.raw()), nullptr);
}

absl::Status Count(FarCounters& counters, const char* what) {
  if (++counters.calls != counters.fail_at) return absl::OkStatus();
  return absl::InternalError(std::string("the far device failed: ") + what);
}

class FarStream;
using FarStreams = std::set<FarStream*>;

using Work = std::vector<std::function<absl::Status()>>;

struct FarRecording final : Recording {
  Work work;
};

class FarStream final : public Stream {
 public:
  FarStream(std::shared_ptr<FarCounters> counters, std::shared_ptr<FarStreams> all)
      : counters_(std::move(counters)), all_(std::move(all)) {
    all_->insert(this);
  }
  ~FarStream() override {
    FinishAll();
    all_->erase(this);
  }

  void* native() const override { return const_cast<FarStream*>(this); }
  absl::Status CopyIn(void* to, const void* host, size_t bytes) override {
    CheckInvariant(!recording_.has_value(), "recordings take pinned memory");
    std::vector<char> staged(bytes);
    if (bytes > 0) std::memcpy(staged.data(), host, bytes);
    return Copy(&FarCounters::copies_in, [to, staged = std::move(staged)] {
      if (!staged.empty()) std::memcpy(Near(to), staged.data(), staged.size());
    });
  }
  absl::Status CopyOut(void* host, const void* from, size_t bytes) override {
    CheckInvariant(!recording_.has_value(), "recordings take pinned memory");
    return Copy(&FarCounters::copies_out, [=] { Move(host, Near(from), bytes); });
  }
  absl::Status CopyPinnedIn(void* to, const void* pinned, size_t bytes) override {
    return Copy(&FarCounters::copies_in, [=] { Move(Near(to), pinned, bytes); });
  }
  absl::Status CopyPinnedOut(void* pinned, const void* from, size_t bytes) override {
    return Copy(&FarCounters::copies_out, [=] { Move(pinned, Near(from), bytes); });
  }
  absl::Status Copy(void* to, const void* from, size_t bytes) override {
    return Copy(&FarCounters::copies_within, [=] { Move(Near(to), Near(from), bytes); });
  }
  absl::Status CopyUnless(const uint32_t* stop, void* to, const void* from, size_t bytes) override {
    return Copy(&FarCounters::copies_within, [=] {
      if (*static_cast<uint32_t*>(Near(stop)) == 0) Move(Near(to), Near(from), bytes);
    });
  }
  absl::Status FlagInfinite(const Tensor& tensor, uint32_t* bad) override {
    ONWARD_RETURN_IF_ERROR(Count(*counters_, "check"));
    return Queue([near = Near(tensor), bad] {
      if (!AllFinite(near)) *static_cast<uint32_t*>(Near(bad)) = 1;
      return absl::OkStatus();
    });
  }
  absl::Status SetStop(const uint32_t* words, int count, const Fault* fault,
                       uint32_t* stop) override {
    ONWARD_RETURN_IF_ERROR(Count(*counters_, "check"));
    return Queue([=] {
      const uint32_t* near = static_cast<const uint32_t*>(Near(words));
      const bool any = std::any_of(near, near + count, [](uint32_t word) { return word != 0; });
      const bool faulty = fault != nullptr && static_cast<Fault*>(Near(fault))->step != 0;
      if (any || faulty) *static_cast<uint32_t*>(Near(stop)) = 1;
      return absl::OkStatus();
    });
  }

  absl::Status BeginRecording() override {
    ONWARD_RETURN_IF_ERROR(Count(*counters_, "begin of a recording"));
    recording_.emplace();
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<Recording>> EndRecording(bool keep) override {
    Work work = *std::exchange(recording_, std::nullopt);
    if (!keep) return std::unique_ptr<Recording>();
    ONWARD_RETURN_IF_ERROR(Count(*counters_, "end of a recording"));
    ++counters_->recordings;
    auto recording = std::make_unique<FarRecording>();
    recording->work = std::move(work);
    return recording;
  }
  absl::Status Replay(Recording& recording) override {
    ONWARD_RETURN_IF_ERROR(Count(*counters_, "replay"));
    ++counters_->replays;
    for (const auto& item : static_cast<FarRecording&>(recording).work) queue_.push_back(item);
    return absl::OkStatus();
  }
  absl::Status WaitFor(Stream& other) override {
    auto& before = static_cast<FarStream&>(other);
    const size_t reached = before.done_ + before.queue_.size();
    return Queue([&before, reached] { return before.Finish(reached); });
  }
  absl::Status Synchronize() override {
    CheckInvariant(!recording_.has_value(), "nothing waits in a recording");
    ++counters_->waits;
    return Finish(done_ + queue_.size());
  }

  absl::Status Queue(std::function<absl::Status()> item) {
    if (recording_.has_value()) {
      recording_->push_back(std::move(item));
    } else {
      queue_.push_back(std::move(item));
    }
    return absl::OkStatus();
  }
  void FinishAll() { Finish(done_ + queue_.size()).IgnoreError(); }
  // Does what was queued first, up to this number of items.
  absl::Status Finish(size_t reached) {
    while (done_ < reached) {
      const auto item = std::move(queue_.front());
      queue_.pop_front();
      ++done_;
      const absl::Status status = item();
      if (status.ok()) continue;
      done_ += queue_.size();
      queue_.clear();
      return status;
    }
    return absl::OkStatus();
  }

 private:
  static void Move(void* to, const void* from, size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  absl::Status Copy(int FarCounters::*count, std::function<void()> copy) {
    ONWARD_RETURN_IF_ERROR(Count(*counters_, "copy"));
    return Queue([counters = counters_, count, copy = std::move(copy)] {
      ++((*counters).*count);
      copy();
      return absl::OkStatus();
    });
  }

  std::shared_ptr<FarCounters> counters_;
  std::shared_ptr<FarStreams> all_;
  std::deque<std::function<absl::Status()>> queue_;
  size_t done_ = 0;  // items, of all that were queued
  std::optional<Work> recording_;
};

// A call whose tensors are near.
class NearCall {
 public:
  explicit NearCall(const KernelCall& call)
      : workspace_(Near(call.workspace)),
        random_(static_cast<const RandomState*>(Near(call.random_there))),
        stop_(static_cast<const uint32_t*>(Near(call.stop))),
        notes_(call.notes) {
    inputs_.reserve(call.inputs.size());
    outputs_.reserve(call.outputs.size());
    for (const Tensor* t : call.inputs) {
      // What is read for its shape alone may be anywhere.
      inputs_.push_back(t == nullptr      ? Tensor()
                        : IsFar(t->raw()) ? Near(*t)
                                          : Tensor(t->dtype(), t->shape(), nullptr, nullptr));
    }
    for (const Tensor* t : call.outputs) outputs_.push_back(t == nullptr ? Tensor() : Near(*t));
    for (size_t i = 0; i < inputs_.size(); ++i) {
      in_.push_back(call.inputs[i] == nullptr ? nullptr : &inputs_[i]);
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      out_.push_back(call.outputs[i] == nullptr ? nullptr : &outputs_[i]);
    }
  }
  NearCall(const NearCall&) = delete;
  // As it is when the work is done.
  bool stopped() const { return stop_ != nullptr && *stop_ != 0; }
  KernelCall call() const {
    return {in_, out_, workspace_, random_ == nullptr ? RandomState{} : *random_, notes_};
  }

 private:
  std::vector<Tensor> inputs_, outputs_;
  std::vector<const Tensor*> in_;
  std::vector<Tensor*> out_;
  void* workspace_;
  const RandomState* random_;
  const uint32_t* stop_;
  UpdateNotes* notes_;
};

absl::StatusOr<Kernel> Moved(Kernel kernel, const std::shared_ptr<FarCounters>& counters) {
  const auto plain = [](const std::vector<Layout>& layouts) {
    return std::all_of(layouts.begin(), layouts.end(),
                       [](const Layout& l) { return l == nullptr; });
  };
  if (!plain(kernel.input_layouts) || !plain(kernel.output_layouts) || !kernel.run) {
    return absl::UnimplementedError("wants a layout of its own");
  }
  kernel.run = [run = kernel.run, counters](const KernelCall& call) {
    ONWARD_RETURN_IF_ERROR(Count(*counters, "kernel"));
    auto near = std::make_shared<NearCall>(call);
    return static_cast<FarStream*>(call.stream)->Queue([=] {
      ++counters->kernels;
      return near->stopped() ? absl::OkStatus() : run(near->call());
    });
  };
  if (kernel.would_be_finite) {
    kernel.flag_infinite = [check = std::exchange(kernel.would_be_finite, nullptr), counters](
                               const KernelCall& call, uint32_t* bad) {
      ONWARD_RETURN_IF_ERROR(Count(*counters, "check"));
      auto near = std::make_shared<NearCall>(call);
      return static_cast<FarStream*>(call.stream)->Queue([=, outputs = call.outputs.size()] {
        const auto found = std::make_unique<bool[]>(outputs);
        check(near->call(), found.get());
        for (size_t o = 0; o < outputs; ++o) {
          if (found[o]) static_cast<uint32_t*>(Near(bad))[o] = 1;
        }
        return absl::OkStatus();
      });
    };
  }
  return kernel;
}

class FarDevice final : public Device {
 public:
  FarDevice(const Device& cpu, FarOptions options, std::shared_ptr<FarCounters> counters)
      : cpu_(cpu), options_(std::move(options)), counters_(std::move(counters)) {
    for (const auto& [key, entries] : cpu.kernels().all()) {
      const auto& [domain, op] = key;
      if (options_.without.contains(op) ||
          (!options_.only.empty() && !options_.only.contains(op)) || op.rfind("Fused", 0) == 0 ||
          op == "MaxPoolWinners" || op == "GatherGradRows") {
        continue;
      }
      for (KernelTable::Entry entry : entries) {
        if (entry.on_values) continue;
        entry.factory = [factory = entry.factory,
                         this](const KernelRequest& request) -> absl::StatusOr<Kernel> {
          ONWARD_ASSIGN_OR_RETURN(Kernel kernel, factory(request));
          return Moved(std::move(kernel), counters_);
        };
        kernels_.Add(op, std::move(entry), domain);
      }
    }
  }

  std::string name() const override { return options_.name; }
  const KernelTable& kernels() const override { return kernels_; }
  bool has_own_memory() const override { return true; }
  absl::StatusOr<std::shared_ptr<void>> Allocate(size_t bytes) const override {
    ONWARD_RETURN_IF_ERROR(Count(*counters_, "allocation"));
    void* const near = std::aligned_alloc(64, std::max<size_t>(64, (bytes + 63) / 64 * 64));
    std::memset(near, 0xff, bytes);
    counters_->live_bytes += static_cast<int64_t>(bytes);
    return std::shared_ptr<void>(Encoded(near),
                                 [bytes, counters = counters_, streams = streams_](void* far) {
                                   for (FarStream* stream : *streams) stream->FinishAll();
                                   std::free(Near(far));
                                   counters->live_bytes -= static_cast<int64_t>(bytes);
                                 });
  }
  absl::StatusOr<std::shared_ptr<void>> AllocateHost(size_t bytes) const override {
    ONWARD_RETURN_IF_ERROR(Count(*counters_, "allocation"));
    return std::shared_ptr<void>(std::calloc(std::max<size_t>(bytes, 1), 1), std::free);
  }
  absl::StatusOr<std::unique_ptr<Stream>> MakeStream() const override {
    return std::make_unique<FarStream>(counters_, streams_);
  }
  absl::StatusOr<Kernel> MakeReorder(DType, const Shape&, const Layout&,
                                     const Layout&) const override {
    return absl::UnimplementedError("has no layouts");
  }
  absl::StatusOr<Kernel> MakeChain(absl::Span<const ChainStep> steps,
                                   absl::Span<const ValueSpec> inputs, const Shape& shape,
                                   const Layout& layout) const override {
    ONWARD_ASSIGN_OR_RETURN(Kernel kernel, cpu_.MakeChain(steps, inputs, shape, layout));
    return Moved(std::move(kernel), counters_);
  }
  Layout LayoutForTranspose(DType, const Shape&, absl::Span<const int64_t>) const override {
    return nullptr;
  }
  size_t memory_limit() const override { return options_.memory_limit; }

 private:
  const Device& cpu_;
  FarOptions options_;
  std::shared_ptr<FarCounters> counters_;
  std::shared_ptr<FarStreams> streams_ = std::make_shared<FarStreams>();
  KernelTable kernels_;
};

}  // namespace

int CopiesOf(const Plan& plan) {
  int copies = 0;
  for (const PlanStep& step : plan.compute) copies += step.transfer;
  for (const PlanValue& v : plan.values) {
    copies += v.device != kHost && v.storage == PlanValue::Storage::kConstant;
  }
  return copies;
}

std::vector<std::string> StepLines(const std::string& text) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StartsWith(line, "  ")) lines.emplace_back(line.substr(2));
  }
  return lines;
}

std::unique_ptr<const Device> MakeFarDevice(const Device& cpu, const FarOptions& options,
                                            std::shared_ptr<FarCounters> counters) {
  return std::make_unique<FarDevice>(cpu, options, std::move(counters));
}

}  // namespace onward
