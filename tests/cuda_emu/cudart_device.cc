// SPDX-License-Identifier: Apache-2.0
// Runtime calls about devices and errors.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "tests/cuda_emu/memory.h"
#include "tests/cuda_emu/shared_memory.h"
#include "tests/cuda_emu/state.h"
#include "tests/cuda_emu/stream.h"

using namespace onward::cuda_emu;

namespace {

constexpr int kMultiprocessors = 4;

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};

constexpr ErrorText kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorLaunchOutOfResources, "cudaErrorLaunchOutOfResources",
     "too many resources requested for launch"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection",
     "invalid copy direction for memcpy"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
     "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {cudaErrorIllegalState, "cudaErrorIllegalState",
     "the operation cannot be performed in the present state"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const ErrorText* Find(cudaError_t error) {
  for (const ErrorText& known : kErrors) {
    if (known.error == error) return &known;
  }
  return nullptr;
}

bool IsDevice(int device) { return device >= 0 && device < GetState().devices; }

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  Entry entry;
  if (GetState().driver < CUDART_VERSION / 1000 * 1000) {
    return Record(cudaErrorInsufficientDriver);
  }
  if (GetState().devices == 0) return Record(cudaErrorNoDevice);
  *count = GetState().devices;
  return Record(cudaSuccess);
}

cudaError_t cudaDriverGetVersion(int* version) {
  Entry entry;
  *version = GetState().driver;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  Entry entry;
  if (!IsDevice(device)) return Record(cudaErrorInvalidDevice);
  SetCurrentDevice(device);
  return Record(cudaSuccess);
}

cudaError_t cudaGetDevice(int* device) {
  Entry entry;
  *device = CurrentDevice();
  return Record(cudaSuccess);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  Entry entry;
  if (!IsDevice(device)) return Record(cudaErrorInvalidDevice);
  std::memset(properties, 0, sizeof *properties);
  std::snprintf(properties->name, sizeof properties->name, "Emulated device %d", device);
  properties->totalGlobalMem = GetState().memory;
  properties->sharedMemPerBlock = kDefaultSharedBytes;
  properties->sharedMemPerBlockOptin = kOptInSharedBytes;
  properties->sharedMemPerMultiprocessor = kOptInSharedBytes + 1024;
  properties->regsPerBlock = 65536;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = 1024;
  properties->maxThreadsDim[2] = 64;
  properties->maxGridSize[0] = 0x7fffffff;
  properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
  properties->major = GetState().capability / 10;
  properties->minor = GetState().capability % 10;
  properties->multiProcessorCount = kMultiprocessors;
  properties->unifiedAddressing = 1;
  properties->concurrentKernels = 1;
  properties->asyncEngineCount = 2;
  properties->memoryPoolsSupported = 1;
  properties->l2CacheSize = 4 << 20;
  return Record(cudaSuccess);
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  Entry entry;
  if (!IsDevice(device)) return Record(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = 1024; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = kDefaultSharedBytes; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = kOptInSharedBytes; break;
    case cudaDevAttrWarpSize: *value = 32; break;
    case cudaDevAttrMultiProcessorCount: *value = kMultiprocessors; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = 2048; break;
    case cudaDevAttrComputeCapabilityMajor: *value = GetState().capability / 10; break;
    case cudaDevAttrComputeCapabilityMinor: *value = GetState().capability % 10; break;
    case cudaDevAttrMaxGridDimX: *value = 0x7fffffff; break;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ: *value = 65535; break;
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrMemoryPoolsSupported: *value = 1; break;
    default: return Record(cudaErrorInvalidValue);
  }
  return Record(cudaSuccess);
}

cudaError_t cudaDeviceSynchronize() {
  Entry entry;
  if (const cudaError_t error = RefuseWhileCapturing(nullptr)) return Record(error);
  FinishDevice(CurrentDevice());
  return Record(cudaSuccess);
}

cudaError_t cudaDeviceReset() {
  Entry entry;
  DropQueuedWork();
  ClearSticky();
  return Record(cudaSuccess);
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  Entry entry;
  if (!IsDevice(device) || !IsDevice(peer)) return Record(cudaErrorInvalidDevice);
  *can = 0;
  return Record(cudaSuccess);
}

cudaError_t cudaMemGetInfo(size_t* available, size_t* total) {
  Entry entry;
  *total = GetState().memory;
  *available = *total - UsedBytes(CurrentDevice());
  return Record(cudaSuccess);
}

cudaError_t cudaGetLastError() {
  Entry entry;
  return TakeLastError();
}

cudaError_t cudaPeekAtLastError() {
  Entry entry;
  return PeekLastError();
}

const char* cudaGetErrorString(cudaError_t error) {
  const ErrorText* known = Find(error);
  return known != nullptr ? known->text : "unrecognized error code";
}

const char* cudaGetErrorName(cudaError_t error) {
  const ErrorText* known = Find(error);
  return known != nullptr ? known->name : "unrecognized error code";
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int block_size,
                                                          size_t shared_bytes) {
  Entry entry;
  if (block_size < 1 || block_size > 1024) return Record(cudaErrorInvalidValue);
  *blocks = 2048 / block_size;
  while (*blocks > 0 && *blocks * shared_bytes > kOptInSharedBytes) --*blocks;
  return Record(cudaSuccess);
}

}  // extern "C"
