// SPDX-License-Identifier: Apache-2.0
#include "tests/support/far_device.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
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

class FarStream final : public Stream {
 public:
  FarStream(std::shared_ptr<FarCounters> counters, std::shared_ptr<FarStreams> all)
      : counters_(std::move(counters)), all_(std::move(all)) {
    all_->insert(this);
  }
  ~FarStream() override {
    Synchronize().IgnoreError();
    all_->erase(this);
  }

  void* native() const override { return const_cast<FarStream*>(this); }
  absl::Status CopyIn(void* to, const void* host, size_t bytes) override {
    ONWARD_RETURN_IF_ERROR(Count(*counters_, "copy"));
    ++counters_->copies_in;
    std::vector<char> staged(bytes);
    if (bytes > 0) std::memcpy(staged.data(), host, bytes);
    return Queue([to, staged = std::move(staged)] {
      if (!staged.empty()) std::memcpy(Near(to), staged.data(), staged.size());
      return absl::OkStatus();
    });
  }
  absl::Status CopyOut(void* host, const void* from, size_t bytes) override {
    ONWARD_RETURN_IF_ERROR(Count(*counters_, "copy"));
    ++counters_->copies_out;
    return Queue([=] {
      if (bytes > 0) std::memcpy(host, Near(from), bytes);
      return absl::OkStatus();
    });
  }
  absl::Status Copy(void* to, const void* from, size_t bytes) override {
    ONWARD_RETURN_IF_ERROR(Count(*counters_, "copy"));
    ++counters_->copies_within;
    return Queue([=] {
      if (bytes > 0) std::memcpy(Near(to), Near(from), bytes);
      return absl::OkStatus();
    });
  }
  absl::StatusOr<bool> AllFinite(const Tensor& tensor) override {
    ONWARD_RETURN_IF_ERROR(Synchronize());
    return onward::AllFinite(Near(tensor));
  }
  absl::Status Synchronize() override {
    CheckInvariant(!begun_.has_value(), "nothing waits before the end");
    std::vector<std::function<absl::Status()>> work = std::exchange(queue_, {});
    for (const auto& item : work) ONWARD_RETURN_IF_ERROR(item());
    return absl::OkStatus();
  }

  absl::Status Begin() override {
    ONWARD_RETURN_IF_ERROR(Count(*counters_, "begin"));
    begun_.emplace();
    return absl::OkStatus();
  }
  absl::Status End(bool keep) override {
    std::vector<std::function<absl::Status()>> whole = *std::exchange(begun_, std::nullopt);
    if (!keep) return absl::OkStatus();
    ONWARD_RETURN_IF_ERROR(Count(*counters_, "end"));
    std::move(whole.begin(), whole.end(), std::back_inserter(queue_));
    return absl::OkStatus();
  }

  absl::Status Queue(std::function<absl::Status()> item) {
    (begun_.has_value() ? *begun_ : queue_).push_back(std::move(item));
    return absl::OkStatus();
  }

 private:
  std::shared_ptr<FarCounters> counters_;
  std::shared_ptr<FarStreams> all_;
  std::vector<std::function<absl::Status()>> queue_;
  std::optional<std::vector<std::function<absl::Status()>>> begun_;
};

// A call whose tensors are near.
class NearCall {
 public:
  explicit NearCall(const KernelCall& call)
      : workspace_(Near(call.workspace)), random_(call.random), notes_(call.notes) {
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
  KernelCall call() const { return {in_, out_, workspace_, random_, notes_}; }

 private:
  std::vector<Tensor> inputs_, outputs_;
  std::vector<const Tensor*> in_;
  std::vector<Tensor*> out_;
  void* workspace_;
  RandomState random_;
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
    ++counters->kernels;
    auto near = std::make_shared<NearCall>(call);
    return static_cast<FarStream*>(call.stream)->Queue([=] { return run(near->call()); });
  };
  if (kernel.would_be_finite) {
    kernel.would_be_finite = [check = kernel.would_be_finite](const KernelCall& call, bool* bad) {
      const NearCall near(call);
      return static_cast<FarStream*>(call.stream)->Synchronize().ok() && check(near.call(), bad);
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
                                   for (FarStream* stream : *streams)
                                     stream->Synchronize().IgnoreError();
                                   std::free(Near(far));
                                   counters->live_bytes -= static_cast<int64_t>(bytes);
                                 });
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

std::unique_ptr<const Device> MakeFarDevice(const Device& cpu, const FarOptions& options,
                                            std::shared_ptr<FarCounters> counters) {
  return std::make_unique<FarDevice>(cpu, options, std::move(counters));
}

}  // namespace onward
