// SPDX-License-Identifier: Apache-2.0
// Fibers, barriers and warps of the running block.
#include "tests/cuda_emu/scheduler.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/cuda_emu/access_check.h"
#include "tests/cuda_emu/barrier_sites.h"
#include "tests/cuda_emu/device.h"
#include "tests/cuda_emu/fiber.h"
#include "tests/cuda_emu/shared_memory.h"
#include "tests/cuda_emu/state.h"
#include "tests/cuda_emu/symbols.h"
#include "tests/cuda_emu/thread_contexts.h"

uint3 threadIdx;
uint3 blockIdx;
dim3 blockDim;
dim3 gridDim;

namespace onward::cuda_emu {
namespace {

constexpr unsigned kLanes = 32;

struct Thread {
  uint3 index;
  unsigned id;
  Fiber* fiber = nullptr;
  int result = 0;         // of the barrier it waits at
  unsigned meetings = 0;  // that its warp had when it was last in one
};

// Lanes that meet in one warp function.
struct Meeting {
  Meeting(unsigned mask, WarpKind kind, size_t bytes, const Site& site)
      : mask(mask), kind(kind), bytes(bytes), site(site) {}

  unsigned mask;
  WarpKind kind;
  size_t bytes;
  Site site;
  unsigned arrived = 0;
  struct Lane {
    const void* in;
    void* out;
    int source;
    Thread* thread;
  } lanes[kLanes];  // of those that arrived
};

struct Warp {
  std::vector<Meeting> meetings;
  unsigned completed = 0;
  unsigned ended = 0;  // lanes
  char orders[2];      // addresses that stand for this meeting and the one before
};

std::string Text(const Site& site) {
  return std::string(site.file_name()) + ":" + std::to_string(site.line());
}

std::string Text(const uint3& index) {
  return "(" + std::to_string(index.x) + ", " + std::to_string(index.y) + ", " +
         std::to_string(index.z) + ")";
}

class Block {
 public:
  void Run(const KernelCall& call);
  int Barrier(Vote vote, int predicate, const Site& site);
  void Exchange(WarpKind kind, unsigned mask, int source, const void* in, void* out, size_t bytes,
                const Site& site);
  void* dynamic_shared() const { return shared_.dynamic(); }
  int lane() const { return static_cast<int>(current_->id % kLanes); }
  bool running() const { return current_ != nullptr; }
  const void* kernel() const { return call_->kernel; }

 private:
  static void RunThreads();
  void RunBlock();
  void Go(Thread* thread);
  void Wait();
  void ReleaseBarrier();
  void Complete(const Meeting& meeting, Warp& warp);
  [[noreturn]] void Deadlock();
  const char* name() const { return KernelName(call_->kernel).c_str(); }

  const KernelCall* call_ = nullptr;
  SharedMemory shared_;
  std::vector<Thread> threads_;
  std::vector<unsigned> order_;
  std::vector<Warp> warps_;
  size_t begun_ = 0, done_ = 0;
  std::vector<Thread*> ready_, at_barrier_;
  Site barrier_site_;
  Vote vote_ = Vote::kNone;
  int votes_ = 0;
  unsigned barriers_ = 0;  // passed so far
  char orders_[2];         // addresses that stand for this barrier and the one before
  ThreadContexts contexts_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  std::vector<Fiber*> spent_;  // whose stacks no other thread of the block may have
  Fiber* fiber_ = nullptr;
  Thread* current_ = nullptr;
  bool shuffles_ = false;
  std::mt19937_64 random_;
};

thread_local std::unique_ptr<Block> running_block;
// The one that runs a kernel, if any does; what a kernel asks is asked often.
Block* block_at_work = nullptr;

// The body of every fiber: begins threads until one of them waits, which then keeps the fiber.
void Block::RunThreads() {
  Block& block = *running_block;
  for (;;) {
    while (block.begun_ < block.threads_.size()) {
      Thread* thread = &block.threads_[block.order_[block.begun_++]];
      thread->fiber = block.fiber_;
      block.Go(thread);
      block.contexts_.Enter(thread->id, nullptr);
      block.call_->run(block.call_->kept.get());
      block.contexts_.Leave(nullptr);
      block.warps_[thread->id / kLanes].ended |= 1u << thread->id % kLanes;
      ++block.done_;
      if (!block.at_barrier_.empty()) {
        Fatal("divergent barrier in %s: thread %s of block %s ended while others wait at %s",
              block.name(), Text(thread->index).c_str(), Text(blockIdx).c_str(),
              Text(block.barrier_site_).c_str());
      }
      if (ThreadContexts::Active()) break;
    }
    (ThreadContexts::Active() ? block.spent_ : block.idle_).push_back(block.fiber_);
    Fiber::Suspend();
  }
}

void Block::Go(Thread* thread) {
  current_ = thread;
  threadIdx = thread->index;
  if (LaunchIsChecked()) SetCheckedThread(thread->id, thread->meetings, thread->fiber->stack());
}

void Block::Wait() {
  Thread* self = current_;
  Fiber::Suspend();
  fiber_ = self->fiber;
  Go(self);
}

void Block::RunBlock() {
  begun_ = done_ = 0;
  for (Warp& warp : warps_) warp.ended = 0;
  BeginCheckedBlock();
  if (shuffles_) std::shuffle(order_.begin(), order_.end(), random_);
  contexts_.BeginBlock(threads_.size());
  shared_.BeginBlock();
  while (done_ < threads_.size()) {
    const bool more = begun_ < threads_.size();
    if (more && (ready_.empty() || !shuffles_ || (random_() & 1) != 0)) {
      if (idle_.empty()) {
        fibers_.push_back(std::make_unique<Fiber>());
        idle_.push_back(fibers_.back().get());
      }
      fiber_ = idle_.back();
      idle_.pop_back();
      fiber_->Resume(RunThreads);
    } else if (!ready_.empty()) {
      if (shuffles_) std::swap(ready_.back(), ready_[random_() % ready_.size()]);
      Thread* thread = ready_.back();
      ready_.pop_back();
      thread->fiber->Resume(RunThreads);
    } else {
      Deadlock();
    }
  }
  shared_.EndBlock();
  contexts_.EndBlock();
  idle_.insert(idle_.end(), spent_.begin(), spent_.end());
  spent_.clear();
}

void Block::Run(const KernelCall& call) {
  call_ = &call;
  const dim3 size = blockDim;
  const size_t count = size_t{size.x} * size.y * size.z;
  threads_.assign(count, {});
  for (unsigned i = 0; i < count; ++i) {
    threads_[i].id = i;
    threads_[i].index = {i % size.x, i / size.x % size.y, i / size.x / size.y};
  }
  order_.resize(count);
  std::iota(order_.begin(), order_.end(), 0u);
  warps_.clear();
  warps_.resize((count + kLanes - 1) / kLanes);
  shuffles_ = GetState().shuffles();
  if (shuffles_) random_.seed(GetState().random());
  std::vector<size_t> blocks(size_t{gridDim.x} * gridDim.y * gridDim.z);
  std::iota(blocks.begin(), blocks.end(), size_t{0});
  if (shuffles_) std::shuffle(blocks.begin(), blocks.end(), random_);
  shared_.BeginLaunch(call.kernel, call.shared_bytes);
  BeginCheckedLaunch({call.kernel,
                      CurrentDevice(),
                      {call.kept.get(), call.kept_bytes},
                      {shared_.room().first, shared_.room().second},
                      {shared_.dynamic(), call.shared_bytes}});
  for (const size_t i : blocks) {
    blockIdx = {static_cast<unsigned>(i % gridDim.x),
                static_cast<unsigned>(i / gridDim.x % gridDim.y),
                static_cast<unsigned>(i / gridDim.x / gridDim.y)};
    RunBlock();
  }
  EndCheckedLaunch();
  current_ = nullptr;
}

void Block::Deadlock() {
  if (!at_barrier_.empty()) {
    Fatal("divergent barrier in %s, block %s: %zu of %zu threads wait at %s, the others elsewhere",
          name(), Text(blockIdx).c_str(), at_barrier_.size(), threads_.size(),
          Text(barrier_site_).c_str());
  }
  for (const Warp& warp : warps_) {
    for (const Meeting& meeting : warp.meetings) {
      Fatal("divergent warp function in %s, block %s, at %s: mask %08x, but only lanes %08x came",
            name(), Text(blockIdx).c_str(), Text(meeting.site).c_str(), meeting.mask,
            meeting.arrived);
    }
  }
  Fatal("%s: no thread can go on", name());
}

int Block::Barrier(Vote vote, int predicate, const Site& site) {
  if (IsSkippedBarrier(site)) return predicate;
  // Threads that are slow to leave this one are not ordered with the next.
  void* const order = &orders_[barriers_ % 2];
  contexts_.Leave(order);
  if (done_ > 0) {
    Fatal("divergent barrier in %s: thread %s of block %s comes to %s after others have ended",
          name(), Text(current_->index).c_str(), Text(blockIdx).c_str(), Text(site).c_str());
  }
  if (at_barrier_.empty()) {
    RememberBarrier(site);
    barrier_site_ = site;
    vote_ = vote;
    votes_ = 0;
  } else if (barrier_site_.line() != site.line() || vote_ != vote) {
    Fatal("divergent barrier in %s, block %s: thread %s is at %s while others wait at %s", name(),
          Text(blockIdx).c_str(), Text(current_->index).c_str(), Text(site).c_str(),
          Text(barrier_site_).c_str());
  }
  votes_ += predicate != 0;
  Thread* self = current_;
  at_barrier_.push_back(self);
  if (at_barrier_.size() == threads_.size()) {
    ReleaseBarrier();
    if (shuffles_) {
      ready_.push_back(self);
      Wait();
    }
  } else {
    Wait();
  }
  contexts_.Enter(self->id, order);
  return self->result;
}

// The last one to come is the current thread, which needs no waking.
void Block::ReleaseBarrier() {
  const int count = static_cast<int>(threads_.size());
  const int result = vote_ == Vote::kCount ? votes_
                     : vote_ == Vote::kAnd ? votes_ == count
                                           : votes_ > 0;
  for (Thread* thread : at_barrier_) {
    thread->result = result;
    if (thread != current_) ready_.push_back(thread);
  }
  at_barrier_.clear();
  ++barriers_;
  if (!shuffles_) std::reverse(ready_.begin(), ready_.end());
  OrderBlock();
  Go(current_);
}

void Block::Exchange(WarpKind kind, unsigned mask, int source, const void* in, void* out,
                     size_t bytes, const Site& site) {
  const unsigned lane = current_->id % kLanes;
  const unsigned first = current_->id - lane;
  Warp& warp = warps_[current_->id / kLanes];
  Thread* self = current_;
  void* const order = &warp.orders[warp.completed % 2];
  contexts_.Leave(order);
  const size_t there = std::min<size_t>(kLanes, threads_.size() - first);
  const unsigned wanted = there == kLanes ? mask : mask & ((1u << there) - 1);
  const auto complain = [&](const char* what) {
    Fatal("warp function in %s, block %s, thread %s, at %s with mask %08x: %s", name(),
          Text(blockIdx).c_str(), Text(current_->index).c_str(), Text(site).c_str(), mask, what);
  };
  if ((mask >> lane & 1) == 0) complain("the mask does not name the calling lane");
  if ((wanted & warp.ended) != 0) complain("the mask names a lane that has ended");
  auto meeting = std::find_if(warp.meetings.begin(), warp.meetings.end(),
                              [&](const Meeting& m) { return (m.mask & mask) != 0; });
  if (meeting == warp.meetings.end()) {
    warp.meetings.emplace_back(mask, kind, bytes, site);
    meeting = warp.meetings.end() - 1;
  }
  if (meeting->mask != mask || meeting->kind != kind || meeting->bytes != bytes ||
      meeting->site.line() != site.line()) {
    complain(("other lanes wait at " + Text(meeting->site)).c_str());
  }
  meeting->arrived |= 1u << lane;
  meeting->lanes[lane] = {in, out, source, current_};
  if (meeting->arrived == wanted) {
    Complete(*meeting, warp);
    warp.meetings.erase(meeting);
    if (shuffles_) {
      ready_.push_back(current_);
      Wait();
    }
  } else {
    Wait();
  }
  contexts_.Enter(self->id, order);
}

void Block::Complete(const Meeting& meeting, Warp& warp) {
  ++warp.completed;
  unsigned ballot = 0;
  alignas(8) char values[kLanes][8];
  std::memset(values, 0xff, sizeof values);  // what lanes give that are not there
  for (unsigned i = 0; i < kLanes; ++i) {
    if ((meeting.arrived >> i & 1) == 0) continue;
    if (meeting.kind == WarpKind::kBallot) {
      ballot |= static_cast<unsigned>(*static_cast<const int*>(meeting.lanes[i].in) != 0) << i;
    } else if (meeting.kind == WarpKind::kShuffle) {
      std::memcpy(values[i], meeting.lanes[i].in, meeting.bytes);
    }
  }
  for (unsigned i = kLanes; i-- > 0;) {
    if ((meeting.arrived >> i & 1) == 0) continue;
    const Meeting::Lane& lane = meeting.lanes[i];
    if (meeting.kind == WarpKind::kBallot) *static_cast<unsigned*>(lane.out) = ballot;
    if (meeting.kind == WarpKind::kShuffle) {
      std::memcpy(lane.out, values[lane.source & (kLanes - 1)], meeting.bytes);
    }
    lane.thread->meetings = warp.completed;
    if (lane.thread != current_) ready_.push_back(lane.thread);
  }
  Go(current_);
}

}  // namespace

void* DynamicShared() { return block_at_work->dynamic_shared(); }
int Lane() { return block_at_work->lane(); }
int Barrier(Vote vote, int predicate, const Site& site) {
  return block_at_work->Barrier(vote, predicate, site);
}
void WarpExchange(WarpKind kind, unsigned mask, int source, const void* in, void* out, size_t bytes,
                  const Site& site) {
  block_at_work->Exchange(kind, mask, source, in, out, bytes, site);
}

void RunKernel(const KernelCall& call) {
  if (running_block == nullptr) running_block = std::make_unique<Block>();
  gridDim = call.grid;
  blockDim = call.block;
  block_at_work = running_block.get();
  running_block->Run(call);
}

bool InsideKernel() { return running_block != nullptr && running_block->running(); }

void DescribePlace(char* text, size_t bytes) {
  std::snprintf(text, bytes, "%s, block %s, thread %s", KernelName(running_block->kernel()).c_str(),
                Text(blockIdx).c_str(), Text(threadIdx).c_str());
}

}  // namespace onward::cuda_emu
