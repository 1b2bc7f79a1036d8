// SPDX-License-Identifier: Apache-2.0
// Kernel launches: what the driver checks, what it does not but should, and the run itself.
#include "tests/cuda_emu/launch.h"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "tests/cuda_emu/device.h"
#include "tests/cuda_emu/memory.h"
#include "tests/cuda_emu/scheduler.h"
#include "tests/cuda_emu/shared_memory.h"
#include "tests/cuda_emu/state.h"
#include "tests/cuda_emu/stream.h"
#include "tests/cuda_emu/symbols.h"

// Of the address sanitizer's own interface; not there in other programs.
extern "C" __attribute__((weak)) int __asan_address_is_poisoned(const volatile void* address);

namespace onward::cuda_emu {
namespace {

constexpr size_t kParameterBytes = 32764;

std::map<const void*, size_t>& SharedLimits() {  // by kernel, where raised
  static auto* limits = new std::map<const void*, size_t>;
  return *limits;
}

cudaError_t CheckGeometry(const KernelCall& call) {
  const dim3 &grid = call.grid, &block = call.block;
  const bool empty =
      grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x == 0 || block.y == 0 || block.z == 0;
  const bool large = block.x > 1024 || block.y > 1024 || block.z > 64 ||
                     size_t{block.x} * block.y * block.z > 1024 || grid.x > 0x7fffffffu ||
                     grid.y > 65535 || grid.z > 65535;
  if (empty || large) return cudaErrorInvalidConfiguration;
  const auto raised = SharedLimits().find(call.kernel);
  const size_t limit = raised == SharedLimits().end() ? kDefaultSharedBytes : raised->second;
  return call.shared_bytes > limit ? cudaErrorInvalidValue : cudaSuccess;
}

// Whether something of this process is at the address. Linux puts programs, their memory and
// libraries above the lowest one; below are the notes of sanitizers, where two small integers side
// by side would point to. They also keep whole ranges of addresses, of which they use little.
bool IsInUse(uintptr_t address) {
  constexpr uintptr_t kLowest = uintptr_t{0x55} << 40, kEnd = uintptr_t{1} << 47;
  if (address < kLowest || address >= kEnd) return false;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  unsigned char byte;
  if (mincore(reinterpret_cast<void*>(address / page * page), 1, &byte) != 0) return false;
  const iovec here = {&byte, 1}, there = {reinterpret_cast<void*>(address), 1};
  if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) < 0 && errno == EFAULT) return false;
  return __asan_address_is_poisoned == nullptr || __asan_address_is_poisoned(there.iov_base) == 0;
}

void CheckPointer(const KernelCall& call, size_t argument, const void* pointer, int device) {
  const char* name = KernelName(call.kernel).c_str();
  const int owner = DeviceOf(pointer);
  if (owner < 0) {
    Fatal(
        "argument %zu of %s is or holds the host pointer %p (a struct's unused pointers must be "
        "null)",
        argument, name, pointer);
  }
  if (owner != device) {
    Fatal("argument %zu of %s, launched on device %d, points to memory of device %d", argument,
          name, device, owner);
  }
  const Allocation* allocation = FindAllocation(pointer);
  if (allocation == nullptr || allocation->retired) {
    Fatal("argument %zu of %s points to memory that is not allocated any more", argument, name);
  }
}

// What the device pointers among the arguments point to, as far as it is known.
Accesses CheckArguments(const KernelCall& call, const std::vector<Argument>& arguments,
                        int device) {
  const char* name = KernelName(call.kernel).c_str();
  std::vector<Access> accesses;
  size_t bytes = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Argument& argument = arguments[i];
    bytes += argument.bytes;
    // In a struct, whatever looks like an address is taken for one if something is there.
    for (size_t at = 0; at + sizeof(uintptr_t) <= argument.bytes; at += sizeof(uintptr_t)) {
      uintptr_t word;
      std::memcpy(&word, static_cast<const char*>(argument.data) + at, sizeof word);
      const void* pointer = reinterpret_cast<const void*>(word);
      if (word == 0) continue;
      if (argument.is_pointer ||
          (argument.bytes > sizeof word && (DeviceOf(pointer) >= 0 || IsInUse(word)))) {
        CheckPointer(call, i, pointer, device);
        if (word % argument.target_alignment != 0) {
          Fatal("argument %zu of %s is %p, but what it points to is aligned to %zu bytes", i, name,
                pointer, argument.target_alignment);
        }
        accesses.push_back({pointer, argument.target_bytes, argument.may_write, name});
      }
    }
  }
  if (bytes > kParameterBytes) {
    Fatal("%s has %zu bytes of parameters; CUDA has room for %zu", name, bytes, kParameterBytes);
  }
  return Touching(std::move(accesses));
}

// Memory may be freed between the call and the run: by another stream, or under a graph.
void CheckStillThere(const KernelCall& call, const std::vector<Access>& accesses) {
  for (const Access& access : accesses) {
    if (FindAllocation(access.data) == nullptr) {
      Fatal("%s runs with a pointer to memory that was freed after it was launched or captured",
            KernelName(call.kernel).c_str());
    }
  }
}

}  // namespace

void RunOnDevice(const std::string& name, const std::function<void()>& work) {
  State& state = GetState();
  const int device = CurrentDevice();
  if (ShallFail(kOnwardEmuFault)) {
    SetSticky(device, cudaErrorIllegalAddress);
    return;
  }
  OpenMemory(device);
  state.running = name;
  work();
  if (state.strict) CheckCanaries(("found after " + name).c_str());
  state.running.clear();
}

cudaError_t Submit(const KernelCall& call, const std::vector<Argument>& arguments) {
  Entry entry;
  if (const cudaError_t sticky = Record(cudaSuccess)) return sticky;
  if (ShallFail(kOnwardEmuLaunch)) return Record(cudaErrorLaunchOutOfResources);
  CUstream_st* stream = Resolve(call.stream);
  if (stream == nullptr) return Record(cudaErrorInvalidResourceHandle);
  if (stream->device != CurrentDevice()) return Record(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = CheckGeometry(call)) return Record(error);
  OnwardEmuCounters& counters = GetState().counters;
  counters.widest_block =
      std::max<int64_t>(counters.widest_block, int64_t{call.block.x} * call.block.y * call.block.z);
  const Accesses accesses = CheckArguments(call, arguments, stream->device);
  return Record(Enqueue(
      stream,
      [call, accesses] {
        CheckStillThere(call, *accesses);
        RunOnDevice(KernelName(call.kernel), [&] {
          ++GetState().counters.launches;
          RunKernel(call);
        });
      },
      accesses));
}

}  // namespace onward::cuda_emu

extern "C" cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute,
                                            int value) {
  using namespace onward::cuda_emu;
  Entry entry;
  if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) return Record(cudaSuccess);
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
      static_cast<size_t>(value) > kOptInSharedBytes) {
    return Record(cudaErrorInvalidValue);
  }
  SharedLimits()[kernel] = static_cast<size_t>(value);
  return Record(cudaSuccess);
}
