// SPDX-License-Identifier: Apache-2.0
// Memory, streams, events, devices and failures of the emulated runtime.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>
#include <vector>

#include "tests/cuda_emu/device_array.h"
#include "tests/cuda_emu/kernels.h"

namespace onward::cuda {
namespace {

class RuntimeTest : public EmulatorTest {
 protected:
  static void TwoDevices() {
    setenv("ONWARD_EMU_DEVICES", "2", 1);
    OnwardEmuReset();
    unsetenv("ONWARD_EMU_DEVICES");
  }
};

class Stream {
 public:
  Stream() { EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess); }
  ~Stream() { cudaStreamDestroy(stream_); }
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

TEST_F(RuntimeTest, HostCannotTouchDeviceMemory) {
  DeviceArray<float> x(std::vector<float>{1, 2, 3});
  volatile float* data = x.get();
  EXPECT_DEATH((void)data[1], "host code touched memory of device 0 .* allocation of 12 bytes");
  EXPECT_DEATH(data[1] = 0, "host code touched memory of device 0");
}

TEST_F(RuntimeTest, FreesOnlyWhatWasAllocated) {
  void* data = nullptr;
  ASSERT_EQ(cudaMalloc(&data, 100), cudaSuccess);
  EXPECT_EQ(Counters().live_bytes, 100);
  EXPECT_EQ(cudaFree(static_cast<char*>(data) + 4), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(data), cudaSuccess);
  EXPECT_EQ(cudaFree(data), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  int host = 0;
  EXPECT_EQ(cudaFree(&host), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeHost(&host), cudaErrorInvalidValue);
  EXPECT_EQ(Counters().live_bytes, 0);
  ASSERT_EQ(cudaMalloc(&data, 0), cudaSuccess);
  EXPECT_EQ(data, nullptr);
}

TEST_F(RuntimeTest, MemoryIsReusedAndEnds) {
  void *a = nullptr, *b = nullptr;
  ASSERT_EQ(cudaMalloc(&a, 1000), cudaSuccess);
  ASSERT_EQ(cudaFree(a), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&b, 1000), cudaSuccess);
  EXPECT_EQ(a, b);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(b) % 256, 0u);
  EXPECT_EQ(cudaMalloc(&a, size_t{1} << 40), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaFree(b), cudaSuccess);
}

TEST_F(RuntimeTest, CopiesNeedTheRightDirectionAndRange) {
  DeviceArray<float> x(10), y(10);
  float host[10] = {}, other[10] = {};
  EXPECT_EQ(cudaMemcpy(x.get(), host, 40, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host, x.get(), 40, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host, other, 40, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(x.get(), y.get(), 40, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(x.get(), host, 44, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(x.get() + 1, host, 40, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(x.get(), 0, 44), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(x.get(), host, 40, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(y.get(), x.get(), 40, cudaMemcpyDeviceToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(other, y.get(), 40, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(Counters().host_to_device, 1);
  EXPECT_EQ(Counters().device_to_device, 1);
  EXPECT_EQ(Counters().device_to_host, 1);
  EXPECT_EQ(Counters().device_to_host_bytes, 40);
}

TEST_F(RuntimeTest, WorkRunsWhenSomethingWaits) {
  Stream stream;
  DeviceArray<float> x(std::vector<float>{1}), y(1);
  float result = -1;
  ASSERT_EQ(Add(1, x.get(), x.get(), y.get(), stream), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(&result, y.get(), 4, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  EXPECT_EQ(result, -1);  // read before the stream was waited for
  EXPECT_EQ(Counters().launches, 0);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(result, 2);
  EXPECT_EQ(Counters().launches, 1);
}

TEST_F(RuntimeTest, PollingMakesProgress) {
  Stream stream;
  DeviceArray<float> x(std::vector<float>{1});
  for (int i = 0; i < 2; ++i) ASSERT_EQ(Add(1, x.get(), x.get(), x.get(), stream), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(x.Values()[0], 4);
}

// b = a + a on one stream, c = b + b on the other.
float ChainOverStreams(bool wait) {
  Stream first, second;
  DeviceArray<float> a(std::vector<float>{1}), b(std::vector<float>{0}), c(1);
  cudaEvent_t event = nullptr;
  EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  EXPECT_EQ(Add(1, a.get(), a.get(), b.get(), first), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, first), cudaSuccess);
  if (wait) {
    EXPECT_EQ(cudaStreamWaitEvent(second, event, 0), cudaSuccess);
  }
  EXPECT_EQ(Add(1, b.get(), b.get(), c.get(), second), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(second), cudaSuccess);
  const float result = c.Values()[0];
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  return result;
}

TEST_F(RuntimeTest, MissingWaitBetweenStreamsShows) {
  EXPECT_EQ(ChainOverStreams(true), 4);
  EXPECT_DEATH(ChainOverStreams(false), "race between streams");
  OnwardEmuCheckOrder(0);
  EXPECT_EQ(ChainOverStreams(false), 0);
  for (int seed = 1; seed <= 5; ++seed) {
    OnwardEmuSeed(seed);
    EXPECT_EQ(ChainOverStreams(true), 4);
  }
}

// The second stream overwrites what the first has not read yet, but is waited for last.
TEST_F(RuntimeTest, SeedsLetOtherStreamsRunAhead) {
  OnwardEmuCheckOrder(0);
  int wrong = 0;
  for (int seed = 1; seed <= 10; ++seed) {
    OnwardEmuSeed(seed);
    Stream first, second;
    DeviceArray<float> a(std::vector<float>{1}), b(1), c(1);
    for (int i = 0; i < 4; ++i) {
      ASSERT_EQ(Add(1, a.get(), a.get(), i == 3 ? c.get() : b.get(), first), cudaSuccess);
    }
    ASSERT_EQ(cudaMemsetAsync(a.get(), 0, 4, second), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(first), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(second), cudaSuccess);
    wrong += c.Values()[0] != 2;
  }
  EXPECT_GT(wrong, 0);
}

TEST_F(RuntimeTest, DefaultStreamWaitsForBlockingStreams) {
  cudaStream_t blocking = nullptr;
  ASSERT_EQ(cudaStreamCreate(&blocking), cudaSuccess);
  DeviceArray<float> a(std::vector<float>{1}), b(1), c(1), d(1);
  ASSERT_EQ(Add(1, a.get(), a.get(), b.get(), blocking), cudaSuccess);
  ASSERT_EQ(Add(1, b.get(), b.get(), c.get(), nullptr), cudaSuccess);
  ASSERT_EQ(Add(1, c.get(), c.get(), d.get(), blocking), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(blocking), cudaSuccess);
  EXPECT_EQ(d.Values()[0], 8);
  ASSERT_EQ(cudaStreamDestroy(blocking), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(blocking), cudaErrorInvalidResourceHandle);
}

TEST_F(RuntimeTest, EventsTellAndMeasure) {
  Stream stream;
  DeviceArray<float> x(std::vector<float>{1});
  cudaEvent_t start = nullptr, end = nullptr;
  ASSERT_EQ(cudaEventCreate(&start), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&end), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(start, stream), cudaSuccess);
  ASSERT_EQ(Add(1, x.get(), x.get(), x.get(), stream), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(end, stream), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(end), cudaErrorNotReady);
  float time = -1;
  EXPECT_EQ(cudaEventElapsedTime(&time, start, end), cudaErrorNotReady);
  ASSERT_EQ(cudaEventSynchronize(end), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(end), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&time, start, end), cudaSuccess);
  EXPECT_GE(time, 0);
  cudaEventDestroy(start);
  cudaEventDestroy(end);
  EXPECT_EQ(cudaEventDestroy(end), cudaErrorInvalidResourceHandle);
}

TEST_F(RuntimeTest, PinnedMemoryIsReadWhenTheCopyIsMade) {
  Stream stream;
  float* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&pinned), 4), cudaSuccess);
  EXPECT_TRUE(std::isnan(*pinned));
  DeviceArray<float> x(1), y(1);
  float pageable = 1;
  *pinned = 1;
  ASSERT_EQ(cudaMemcpyAsync(x.get(), pinned, 4, cudaMemcpyHostToDevice, stream), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(y.get(), &pageable, 4, cudaMemcpyHostToDevice, stream), cudaSuccess);
  *pinned = pageable = 2;  // too early for the first copy
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(x.Values()[0], 2);
  EXPECT_EQ(y.Values()[0], 1);
  ASSERT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST_F(RuntimeTest, FreeInStreamOrder) {
  Stream stream;
  DeviceArray<float> x(std::vector<float>{1}), y(1);
  float* data = nullptr;
  ASSERT_EQ(cudaMallocAsync(reinterpret_cast<void**>(&data), 4, stream), cudaSuccess);
  ASSERT_EQ(Add(1, x.get(), x.get(), data, stream), cudaSuccess);
  ASSERT_EQ(Add(1, data, data, y.get(), stream), cudaSuccess);
  ASSERT_EQ(cudaFreeAsync(data, stream), cudaSuccess);
  EXPECT_EQ(cudaFreeAsync(data, stream), cudaErrorInvalidValue);
  EXPECT_DEATH(Add(1, data, data, y.get(), stream), "not allocated any more");
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(y.Values()[0], 4);
}

TEST_F(RuntimeTest, MemoryBelongsToOneDevice) {
  TwoDevices();
  int count = 0;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  ASSERT_EQ(count, 2);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  DeviceArray<float> x(std::vector<float>{3});
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  DeviceArray<float> y(std::vector<float>{4});
  EXPECT_DEATH(Add(1, x.get(), y.get(), y.get(), nullptr),
               "argument 1 of .*launched on device 1, points to memory of device 0");
  ASSERT_EQ(cudaMemcpyPeerAsync(y.get(), 1, x.get(), 0, 4, nullptr), cudaSuccess);
  EXPECT_EQ(y.Values()[0], 3);
  EXPECT_EQ(cudaMemcpyPeerAsync(y.get(), 0, x.get(), 1, 4, nullptr), cudaErrorInvalidValue);
}

TEST_F(RuntimeTest, StreamsBelongToOneDevice) {
  TwoDevices();
  Stream stream;
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(Nothing(1, 1, 0, stream), cudaErrorInvalidResourceHandle);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(Nothing(1, 1, 0, stream), cudaSuccess);
}

TEST_F(RuntimeTest, IsTheMachineThatTheEnvironmentDescribes) {
  setenv("ONWARD_EMU_CAPABILITY", "61", 1);
  OnwardEmuReset();
  unsetenv("ONWARD_EMU_CAPABILITY");
  int major = 0, minor = 0;
  EXPECT_EQ(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), cudaSuccess);
  EXPECT_EQ(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0), cudaSuccess);
  EXPECT_EQ(major * 10 + minor, 61);
  setenv("ONWARD_EMU_DRIVER", "12040", 1);
  OnwardEmuReset();
  unsetenv("ONWARD_EMU_DRIVER");
  int driver = 0, count = -1;
  EXPECT_EQ(cudaDriverGetVersion(&driver), cudaSuccess);
  EXPECT_EQ(driver, 12040);
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
  EXPECT_EQ(count, -1);  // untouched, as by NVIDIA's
}

struct FailureCase {
  OnwardEmuKind kind;
  cudaError_t error;
  cudaError_t (*call)(float* data);
};

TEST_F(RuntimeTest, TheAskedForCallFails) {
  const FailureCase cases[] = {
      {kOnwardEmuAlloc, cudaErrorMemoryAllocation,
       [](float*) {
         void* data = nullptr;
         const cudaError_t error = cudaMalloc(&data, 4);
         cudaFree(data);
         return error;
       }},
      {kOnwardEmuLaunch, cudaErrorLaunchOutOfResources,
       [](float* data) { return Add(1, data, data, data, nullptr); }},
      {kOnwardEmuCopy, cudaErrorInvalidValue,
       [](float* data) { return cudaMemsetAsync(data, 0, 4, nullptr); }},
      {kOnwardEmuObject, cudaErrorMemoryAllocation,
       [](float*) {
         cudaEvent_t event = nullptr;
         const cudaError_t error = cudaEventCreate(&event);
         if (error == cudaSuccess) cudaEventDestroy(event);
         return error;
       }},
  };
  DeviceArray<float> x(std::vector<float>{1});
  for (const FailureCase& c : cases) {
    OnwardEmuFailCall(c.kind, 3);
    EXPECT_EQ(c.call(x.get()), cudaSuccess);
    EXPECT_EQ(c.call(x.get()), cudaSuccess);
    EXPECT_EQ(c.call(x.get()), c.error) << c.kind;
    EXPECT_EQ(c.call(x.get()), cudaSuccess);
    EXPECT_EQ(OnwardEmuCalls(c.kind), 4);
    EXPECT_EQ(cudaGetLastError(), c.error);
  }
}

TEST_F(RuntimeTest, TheEnvironmentAsksForFailures) {
  setenv("ONWARD_EMU_FAIL", "alloc:2", 1);
  OnwardEmuReset();
  unsetenv("ONWARD_EMU_FAIL");
  DeviceArray<float> x(1);
  void* data = nullptr;
  EXPECT_EQ(cudaMalloc(&data, 4), cudaErrorMemoryAllocation);
  setenv("ONWARD_EMU_FAIL", "allocation", 1);
  EXPECT_DEATH(OnwardEmuReset(), "ONWARD_EMU_FAIL=allocation: expected kind:k");
  unsetenv("ONWARD_EMU_FAIL");
}

TEST_F(RuntimeTest, AFaultOfAKernelIsSticky) {
  DeviceArray<float> x(std::vector<float>{1});
  OnwardEmuFailCall(kOnwardEmuFault, 1);
  EXPECT_EQ(Add(1, x.get(), x.get(), x.get(), nullptr), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(Add(1, x.get(), x.get(), x.get(), nullptr), cudaErrorIllegalAddress);
  float value = 0;
  EXPECT_EQ(cudaMemcpy(&value, x.get(), 4, cudaMemcpyDeviceToHost), cudaErrorIllegalAddress);
  EXPECT_STREQ(cudaGetErrorString(cudaErrorIllegalAddress),
               "an illegal memory access was encountered");
  EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_EQ(Add(1, x.get(), x.get(), x.get(), nullptr), cudaSuccess);
}

TEST_F(RuntimeTest, HostFunctionsRunInOrderAndMayNotTouchDeviceMemory) {
  Stream stream;
  DeviceArray<float> x(std::vector<float>{1});
  int calls = 0;
  ASSERT_EQ(Add(1, x.get(), x.get(), x.get(), stream), cudaSuccess);
  ASSERT_EQ(cudaLaunchHostFunc(
                stream, [](void* data) { ++*static_cast<int*>(data); }, &calls),
            cudaSuccess);
  EXPECT_EQ(calls, 0);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(calls, 1);
  EXPECT_DEATH(
      {
        cudaLaunchHostFunc(
            stream, [](void* data) { *static_cast<float*>(data) = 0; }, x.get());
        cudaStreamSynchronize(stream);
      },
      "host code touched memory");
}

TEST_F(RuntimeTest, ThreadsOfTheHost) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      Stream stream;
      DeviceArray<float> x(std::vector<float>(1000, static_cast<float>(t))), partial(2);
      for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(TreeSum(2, 1000, x.get(), partial.get(), stream), cudaSuccess);
        EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
        const std::vector<float> sums = partial.Values();
        EXPECT_EQ(sums[0] + sums[1], 1000.0f * t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace onward::cuda
