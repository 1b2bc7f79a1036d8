// SPDX-License-Identifier: Apache-2.0
// Settings, counters and failures, and the control functions over them.
#include "tests/cuda_emu/state.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "tests/cuda_emu/crash.h"
#include "tests/cuda_emu/memory.h"
#include "tests/cuda_emu/scheduler.h"
#include "tests/cuda_emu/stream.h"

namespace onward::cuda_emu {
namespace {

constexpr const char* kKindNames[kOnwardEmuKinds] = {"alloc",   "launch", "copy",
                                                     "library", "object", "fault"};

thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;
thread_local int entries = 0;
std::map<int, cudaError_t>& StickyErrors() {
  static auto* errors = new std::map<int, cudaError_t>;
  return *errors;
}

uint64_t Number(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace

void Fatal(const char* format, ...) {
  std::fflush(stdout);
  std::fprintf(stderr, "cuda_emu: ");
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "\n");
  std::abort();
}

State::State() { ReadEnvironment(); }

void State::ReadEnvironment() {
  seed = Number("ONWARD_EMU_SEED", 0);
  random.seed(seed);
  strict = static_cast<int>(Number("ONWARD_EMU_STRICT", 0));
  checks_order = true;
  devices = static_cast<int>(std::min<uint64_t>(Number("ONWARD_EMU_DEVICES", 1), kMaxDevices));
  memory = Number("ONWARD_EMU_MEMORY", uint64_t{8} << 30);
  capability = static_cast<int>(Number("ONWARD_EMU_CAPABILITY", 80));
  driver = static_cast<int>(Number("ONWARD_EMU_DRIVER", CUDART_VERSION));
  std::fill(std::begin(calls), std::end(calls), 0);
  std::fill(std::begin(fail_at), std::end(fail_at), 0);
  const char* fail = std::getenv("ONWARD_EMU_FAIL");
  if (fail == nullptr || *fail == '\0') return;
  const char* colon = std::strchr(fail, ':');
  const std::string kind(fail, colon != nullptr ? colon - fail : std::strlen(fail));
  const auto* found = std::find(std::begin(kKindNames), std::end(kKindNames), kind);
  if (colon == nullptr || found == std::end(kKindNames)) {
    Fatal(
        "ONWARD_EMU_FAIL=%s: expected kind:k, with a kind of alloc, launch, copy, library, "
        "object, fault",
        fail);
  }
  fail_at[found - kKindNames] = std::strtoll(colon + 1, nullptr, 10);
}

State& GetState() {
  static auto* state = new State;  // never destroyed: others run at exit
  return *state;
}

bool ShallFail(OnwardEmuKind kind) {
  State& state = GetState();
  return ++state.calls[kind] == state.fail_at[kind];
}

int CurrentDevice() { return current_device; }
void SetCurrentDevice(int device) { current_device = device; }

void SetSticky(int device, cudaError_t error) { StickyErrors().emplace(device, error); }
cudaError_t Sticky(int device) {
  const auto found = StickyErrors().find(device);
  return found == StickyErrors().end() ? cudaSuccess : found->second;
}
void ClearSticky() { StickyErrors().clear(); }

Entry::Entry() : lock_(GetState().mutex) {
  ++entries;
  ExplainFaults();
}
Entry::~Entry() {
  if (--entries == 0) CloseMemory();
}

cudaError_t Record(cudaError_t error) {
  if (error == cudaSuccess) error = Sticky(current_device);
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

cudaError_t TakeLastError() {
  const cudaError_t error = PeekLastError();
  last_error = cudaSuccess;
  return error;
}

cudaError_t PeekLastError() {
  const cudaError_t sticky = Sticky(current_device);
  return sticky != cudaSuccess ? sticky : last_error;
}

}  // namespace onward::cuda_emu

using onward::cuda_emu::Entry;
using onward::cuda_emu::GetState;

void OnwardEmuSeed(uint64_t seed) {
  Entry entry;
  GetState().seed = seed;
  GetState().random.seed(seed);
}

void OnwardEmuStrict(int strict) {
  Entry entry;
  GetState().strict = strict;
}

void OnwardEmuCheckOrder(int checked) {
  Entry entry;
  GetState().checks_order = checked != 0;
  onward::cuda_emu::ForgetAllAccesses();
}

void OnwardEmuFailCall(OnwardEmuKind kind, int64_t k) {
  Entry entry;
  GetState().calls[kind] = 0;
  GetState().fail_at[kind] = k;
}

int64_t OnwardEmuCalls(OnwardEmuKind kind) {
  Entry entry;
  return GetState().calls[kind];
}

void OnwardEmuGetCounters(OnwardEmuCounters* counters) {
  Entry entry;
  *counters = GetState().counters;
}

void OnwardEmuClearCounters() {
  Entry entry;
  OnwardEmuCounters& counters = GetState().counters;
  OnwardEmuCounters kept = {};
  kept.live_bytes = kept.peak_bytes = counters.live_bytes;
  kept.live_allocations = counters.live_allocations;
  kept.live_host_bytes = counters.live_host_bytes;
  kept.live_objects = counters.live_objects;
  counters = kept;
}

void OnwardEmuReset() {
  Entry entry;
  onward::cuda_emu::DropQueuedWork();
  onward::cuda_emu::ClearSticky();
  onward::cuda_emu::TakeLastError();
  onward::cuda_emu::SetCurrentDevice(0);
  GetState().ReadEnvironment();
  OnwardEmuSkipBarrier(-1);
  OnwardEmuClearCounters();
}
