// SPDX-License-Identifier: Apache-2.0
// What all parts of the emulator share: the lock, settings, counters, errors and asked-for
// failures.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <mutex>
#include <random>
#include <string>

#include "tests/cuda_emu/control.h"

namespace onward::cuda_emu {

// A bug of the program under test that hardware would not tell apart from bad luck.
[[noreturn]] __attribute__((format(printf, 1, 2))) void Fatal(const char* format, ...);

struct State {
  std::recursive_mutex mutex;
  uint64_t seed = 0;
  int strict = 0;
  bool checks_order = true;  // between streams
  int devices = 1;
  int capability = 80;          // of the devices: 10 * major + minor
  int driver = CUDART_VERSION;  // as cudaDriverGetVersion tells it; 0: none
  size_t memory = size_t{8} << 30;
  OnwardEmuCounters counters = {};
  int64_t calls[kOnwardEmuKinds] = {};
  int64_t fail_at[kOnwardEmuKinds] = {};
  std::mt19937_64 random;
  std::string running;  // the kernel or library call that runs now

  State();
  void ReadEnvironment();
  bool shuffles() const { return seed != 0; }
  bool Coin() { return (random() & 1) != 0; }
  size_t Below(size_t n) { return static_cast<size_t>(random() % n); }
};

State& GetState();

// Counts a call of the kind; true if this is the one that shall fail.
bool ShallFail(OnwardEmuKind kind);

// The device of the calling thread.
int CurrentDevice();
void SetCurrentDevice(int device);

// An error that every later call on the device returns.
void SetSticky(int device, cudaError_t error);
cudaError_t Sticky(int device);
void ClearSticky();

// What every entry of the runtime holds: the lock; memory is closed to the host again at its end.
class Entry {
 public:
  Entry();
  ~Entry();
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

// Keeps the error for cudaGetLastError.
cudaError_t Record(cudaError_t error);
cudaError_t TakeLastError();
cudaError_t PeekLastError();

}  // namespace onward::cuda_emu
