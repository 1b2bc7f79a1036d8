// SPDX-License-Identifier: Apache-2.0
// What tests tell the emulator and ask of it. C linkage: the emulator may live in a library opened
// at run time, where these are found by name. The environment sets the same at the start:
// ONWARD_EMU_SEED, ONWARD_EMU_STRICT and ONWARD_EMU_FAIL=kind:k; and what the machine has:
// ONWARD_EMU_DEVICES, ONWARD_EMU_MEMORY (bytes per device), ONWARD_EMU_CAPABILITY (75 is 7.5) and
// ONWARD_EMU_DRIVER (12040 serves CUDA 12.4; 0: none).
#pragma once

#include <stddef.h>
#include <stdint.h>

#define ONWARD_EMU_API extern "C" __attribute__((visibility("default")))

// Which calls a failure is asked for.
enum OnwardEmuKind {
  kOnwardEmuAlloc,    // "alloc": device and pinned memory
  kOnwardEmuLaunch,   // "launch": kernels and graphs; the call itself fails
  kOnwardEmuCopy,     // "copy": copies and fills
  kOnwardEmuLibrary,  // "library": calls of cuBLAS and cuDNN
  kOnwardEmuObject,   // "object": streams, events, graphs
  kOnwardEmuFault,    // "fault": a kernel fails while it runs; the error is sticky
  kOnwardEmuKinds
};

struct OnwardEmuCounters {
  int64_t live_bytes;  // device memory not freed
  int64_t live_allocations;
  int64_t live_host_bytes;  // pinned memory not freed
  int64_t live_objects;     // streams, events, graphs, handles and descriptors not destroyed
  int64_t peak_bytes;
  int64_t launches;  // kernels run, those of graphs included
  int64_t graph_launches;
  int64_t library_calls;
  int64_t host_to_device, device_to_host, device_to_device;  // copies made
  int64_t host_to_device_bytes, device_to_host_bytes, device_to_device_bytes;
  int64_t waits;         // calls that made the host wait
  int64_t widest_block;  // most threads of a block that was launched
  int64_t races;  // accesses without a barrier between them, found while a barrier was taken away
};

// 0: everything runs as late and in as plain an order as it can. Otherwise threads, warps, blocks
// and streams are interleaved at random.
ONWARD_EMU_API void OnwardEmuSeed(uint64_t seed);
// 1: after every kernel and library call all canaries are checked, so that it is named. 2: also
// every access of a kernel is checked, for being to memory it may touch and for races (slow).
ONWARD_EMU_API void OnwardEmuStrict(int strict);
// Whether work of several streams that touches the same bytes and that nothing orders ends the
// program, as it does from the start.
ONWARD_EMU_API void OnwardEmuCheckOrder(int checked);
// Kernels that were run so far while every access was to be checked, by their signatures.
ONWARD_EMU_API int OnwardEmuCheckedKernels();
ONWARD_EMU_API const char* OnwardEmuCheckedKernel(int index);
// The k-th call of the kind from now on fails, once (k = 1 is the next one); k = 0 takes it back.
ONWARD_EMU_API void OnwardEmuFailCall(OnwardEmuKind kind, int64_t k);
// Calls of the kind since the last OnwardEmuFailCall for it.
ONWARD_EMU_API int64_t OnwardEmuCalls(OnwardEmuKind kind);
ONWARD_EMU_API void OnwardEmuGetCounters(OnwardEmuCounters* counters);
// Clears the counters of what was done; what is live stays counted.
ONWARD_EMU_API void OnwardEmuClearCounters();
// Forgets queued work, errors and settings; live memory and objects stay. Reads the environment
// again.
ONWARD_EMU_API void OnwardEmuReset();

// Lines with a __syncthreads() that were reached so far; index is below the count.
ONWARD_EMU_API int OnwardEmuBarrierSites();
ONWARD_EMU_API const char* OnwardEmuBarrierFile(int index);
ONWARD_EMU_API int OnwardEmuBarrierLine(int index);
// How often a block was held there.
ONWARD_EMU_API int64_t OnwardEmuBarrierReached(int index);
// That barrier does nothing from now on, as if the line were removed; -1: all work again. Meanwhile
// races do not end the program, but are counted.
ONWARD_EMU_API void OnwardEmuSkipBarrier(int index);
