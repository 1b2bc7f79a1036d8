// SPDX-License-Identifier: Apache-2.0
// Who touched which byte last, and whether that is ordered with who touches it now.
#include "tests/cuda_emu/access_check.h"

#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "tests/cuda_emu/barrier_sites.h"
#include "tests/cuda_emu/control.h"
#include "tests/cuda_emu/memory.h"
#include "tests/cuda_emu/scheduler.h"
#include "tests/cuda_emu/state.h"
#include "tests/cuda_emu/symbols.h"
#include "tests/cuda_emu/thread_contexts.h"

namespace onward::cuda_emu {
namespace {

// An interval is what a block does between two barriers; they are numbered for ever.
struct Touch {
  uint32_t interval;
  uint32_t thread : 10;
  uint32_t meetings : 19;
  uint32_t atomic : 1;
  uint32_t lanes : 1;  // more than one thread of the warp, not ordered with each other
  uint32_t warps : 1;  // more than one warp or block
};

struct Cell {
  Touch write, read;
};

struct Range {
  uintptr_t first = 0, last = 0;

  bool Holds(uintptr_t at, size_t bytes) const { return at >= first && at + bytes <= last; }
};

Range RangeOf(const Bytes& bytes) {
  const auto first = reinterpret_cast<uintptr_t>(bytes.data);
  return {first, first + bytes.size};
}

// Bytes that are watched. Shared ones are other bytes in every block.
struct Region {
  Range range;
  bool shared;
  Cell* cells;
};

struct Checker {
  uint32_t interval = 0, launch_first = 0, block_first = 0;
  Touch now = {};
  Range stack, arguments, dynamic;
  Range allocated[4];  // parts of device memory that were touched lately
  unsigned oldest = 0;
  std::vector<Range> modules, arrays;  // code and constants; static shared arrays, sorted
  std::vector<Region> regions;         // all there ever were
  std::vector<Region> watched;         // of this launch
  std::vector<const void*> kernels;    // all there ever were
};

Checker& Get() {
  static auto* checker = new Checker;
  return *checker;
}

// Other threads of the host run instrumented code meanwhile.
thread_local bool active = false;

int AddModule(dl_phdr_info* info, size_t, void* data) {
  auto* modules = static_cast<std::vector<Range>*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    const uintptr_t start = info->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD) modules->push_back({start, start + header.p_memsz});
  }
  return 0;
}

void Watch(Checker& checker, const Range& range, bool shared) {
  if (range.first == range.last) return;
  const auto found =
      std::find_if(checker.regions.begin(), checker.regions.end(), [&range](const Region& region) {
        return region.range.first == range.first && region.range.last == range.last;
      });
  if (found != checker.regions.end()) {
    checker.watched.push_back(*found);
    return;
  }
  void* cells = mmap(nullptr, (range.last - range.first) * sizeof(Cell), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (cells == MAP_FAILED) Fatal("no addresses left for checking accesses");
  checker.regions.push_back({range, shared, static_cast<Cell*>(cells)});
  checker.watched.push_back(checker.regions.back());
}

// Whether whoever left the touch was done before the present thread went on.
bool Ordered(const Checker& checker, const Touch& before, bool shared) {
  if (before.interval < (shared ? checker.block_first : checker.launch_first)) return true;
  if (before.interval < checker.block_first) return false;  // another block of this launch
  if (before.interval < checker.now.interval) return true;  // a barrier was between
  if (before.warps != 0 || before.thread / 32 != checker.now.thread / 32) return false;
  return (before.lanes == 0 && before.thread == checker.now.thread) ||
         before.meetings < checker.now.meetings;
}

[[noreturn]] void Illegal(uintptr_t at, size_t bytes, bool write, const char* what) {
  active = false;
  char place[1024];
  DescribePlace(place, sizeof place);
  Fatal("illegal %s of %zu bytes at %p (%s) in %s", write ? "write" : "read", bytes,
        reinterpret_cast<void*>(at), what, place);
}

// Where a barrier was taken away, races are what a test wants to see; it counts them.
void Race(const Checker& checker, const Touch& before, bool was_write, bool write) {
  ++GetState().counters.races;
  if (SkipsABarrier()) return;
  active = false;
  char place[1024];
  DescribePlace(place, sizeof place);
  Fatal("race: a %s in %s, and a %s by thread %u of %s%s, with no barrier between",
        write ? "write" : "read", place, was_write ? "write" : "read",
        static_cast<unsigned>(before.thread),
        before.interval < checker.block_first ? "another block" : "the same block",
        before.lanes != 0 || before.warps != 0 ? ", the last of several" : "");
}

void TouchByte(const Checker& checker, Cell& cell, bool shared, bool write, const Touch& now) {
  const auto conflicts = [&](const Touch& before) {
    return !(now.atomic != 0 && before.atomic != 0) && !Ordered(checker, before, shared);
  };
  if (conflicts(cell.write)) {
    Race(checker, cell.write, true, write);
  } else if (write && conflicts(cell.read)) {
    Race(checker, cell.read, false, write);
  }
  Touch& kept = write ? cell.write : cell.read;
  const Touch before = kept;
  kept = now;
  const bool ordered = Ordered(checker, before, shared);
  // One access that is not atomic counts for all of an interval.
  if (before.interval == now.interval || !ordered) kept.atomic &= before.atomic;
  if (!write && !ordered) {
    kept.lanes = 1;
    kept.warps = before.warps != 0 || before.interval < checker.block_first ||
                 before.thread / 32 != now.thread / 32;
  }
}

bool InDeviceMemory(Checker& checker, uintptr_t at, size_t bytes) {
  for (const Range& range : checker.allocated) {
    if (range.Holds(at, bytes)) return true;
  }
  const Allocation* allocation = FindAllocation(reinterpret_cast<void*>(at));
  if (allocation == nullptr) return false;
  const Range range = RangeOf({allocation->data, allocation->bytes});
  checker.allocated[checker.oldest++ % std::size(checker.allocated)] = range;
  return range.Holds(at, bytes);
}

bool InSharedMemory(const Checker& checker, uintptr_t at, size_t bytes) {
  if (checker.dynamic.Holds(at, bytes)) return true;
  const auto next =
      std::upper_bound(checker.arrays.begin(), checker.arrays.end(), at,
                       [](uintptr_t a, const Range& range) { return a < range.first; });
  return next != checker.arrays.begin() && std::prev(next)->Holds(at, bytes);
}

}  // namespace

void CheckWatched(const void* address, size_t bytes, bool write, bool atomic, size_t alignment) {
  if (!active) return;
  Checker& checker = Get();
  const auto at = reinterpret_cast<uintptr_t>(address);
  if (checker.stack.Holds(at, bytes)) return;
  for (const Region& region : checker.watched) {
    if (at < region.range.first || at >= region.range.last) continue;
    if (region.shared && !InSharedMemory(checker, at, bytes)) {
      Illegal(at, bytes, write, "outside of the shared memory of this launch");
    }
    if (!region.shared && !InDeviceMemory(checker, at, bytes)) {
      Illegal(at, bytes, write, "outside of every allocation of this device");
    }
    if (at % alignment != 0) Illegal(at, bytes, write, "misaligned");
    Touch now = checker.now;
    now.atomic = atomic;
    Cell* cells = region.cells + (at - region.range.first);
    for (size_t i = 0; i < bytes; ++i) TouchByte(checker, cells[i], region.shared, write, now);
    return;
  }
  if (checker.arguments.Holds(at, bytes)) return;
  const auto holds = [&](const Range& range) { return range.Holds(at, bytes); };
  if (std::any_of(checker.modules.begin(), checker.modules.end(), holds)) return;
  Illegal(at, bytes, write, DeviceOf(address) >= 0 ? "another device's memory" : "host memory");
}

void BeginCheckedLaunch(const LaunchScope& scope) {
  if (GetState().strict < 2) return;
  Checker& checker = Get();
  if (std::find(checker.kernels.begin(), checker.kernels.end(), scope.kernel) ==
      checker.kernels.end()) {
    checker.kernels.push_back(scope.kernel);
  }
  // Then accesses are told to the sanitizer, which leaves no addresses for so many cells.
  if (ThreadContexts::Active()) return;
  checker.launch_first = ++checker.interval;
  checker.arguments = RangeOf(scope.arguments);
  checker.dynamic = RangeOf(scope.dynamic_shared);
  std::fill(std::begin(checker.allocated), std::end(checker.allocated), Range{});
  checker.modules.clear();
  dl_iterate_phdr(AddModule, &checker.modules);
  checker.arrays.clear();
  for (const SharedArray& array : SharedArrays(scope.kernel)) {
    checker.arrays.push_back(RangeOf({array.data, array.bytes}));
  }
  checker.watched.clear();
  Watch(checker, RangeOf(scope.dynamic_room), true);
  if (!checker.arrays.empty()) {
    Watch(checker, {checker.arrays.front().first, checker.arrays.back().last}, true);
  }
  const auto [first, bytes] = AddressesOf(scope.device);
  Watch(checker, RangeOf({first, bytes}), false);
  active = true;
  launch_is_checked = true;
}

void EndCheckedLaunch() {
  launch_is_checked = false;
  active = false;
}

void BeginCheckedBlock() {
  if (active) Get().block_first = ++Get().interval;
}

void OrderBlock() {
  if (active) ++Get().interval;
}

void SetCheckedThread(unsigned thread, unsigned meetings, Bytes stack) {
  if (!active) return;
  Checker& checker = Get();
  checker.stack = RangeOf(stack);
  checker.now = {checker.interval, thread, meetings & 0x7ffff, 0, 0, 0};
}

}  // namespace onward::cuda_emu

int OnwardEmuCheckedKernels() { return static_cast<int>(onward::cuda_emu::Get().kernels.size()); }
const char* OnwardEmuCheckedKernel(int index) {
  return onward::cuda_emu::KernelName(onward::cuda_emu::Get().kernels.at(index)).c_str();
}
