// SPDX-License-Identifier: Apache-2.0
// Work of different streams on the same bytes is an error where nothing orders it, and none where
// something does.
#include <cublas_v2.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "tests/cuda_emu/device_array.h"
#include "tests/cuda_emu/faulty_kernels.h"
#include "tests/cuda_emu/kernels.h"

namespace onward::cuda {
namespace {

class StreamOrderTest : public EmulatorTest {
 protected:
  void SetUp() override {
    EmulatorTest::SetUp();
    ASSERT_EQ(cudaStreamCreateWithFlags(&first_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&second_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), cudaSuccess);
    ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&pinned_), 64), cudaSuccess);
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&x_), 64), cudaSuccess);
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&y_), 64), cudaSuccess);
  }
  void TearDown() override {
    cudaDeviceSynchronize();
    cudaFree(x_);
    cudaFree(y_);
    cudaFreeHost(pinned_);
    cudaEventDestroy(event_);
    cudaStreamDestroy(first_);
    cudaStreamDestroy(second_);
    EmulatorTest::TearDown();
  }

  void CopyIn(cudaStream_t stream) {
    ASSERT_EQ(cudaMemcpyAsync(x_, pinned_, 64, cudaMemcpyHostToDevice, stream), cudaSuccess);
  }
  // Reads x, writes y.
  void Use(cudaStream_t stream) { ASSERT_EQ(Add(16, x_, x_, y_, stream), cudaSuccess); }
  void Record(cudaStream_t stream) { ASSERT_EQ(cudaEventRecord(event_, stream), cudaSuccess); }
  void Await(cudaStream_t stream) {
    ASSERT_EQ(cudaStreamWaitEvent(stream, event_, 0), cudaSuccess);
  }

  cudaStream_t first_ = nullptr, second_ = nullptr;
  cudaEvent_t event_ = nullptr;
  float *pinned_ = nullptr, *x_ = nullptr, *y_ = nullptr;
};

TEST_F(StreamOrderTest, FindsWhatNothingOrders) {
  struct Case {
    const char* what;
    std::function<void()> first, second;
    const char* message;
  };
  const float one = 1;
  const auto square = [&](cudaStream_t stream) {
    cublasHandle_t handle = nullptr;
    cublasCreate(&handle);
    cublasSetStream(handle, stream);
    cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, x_, 2, x_, 2, &one, y_, 2);
  };
  const Case cases[] = {
      {"a copy is not there yet", [&] { CopyIn(first_); }, [&] { Use(second_); },
       "AddKernel.* reads bytes that a copy.* writes"},
      {"a copy overwrites what is still read", [&] { Use(first_); }, [&] { CopyIn(second_); },
       "a copy writes bytes that .*AddKernel.* reads"},
      {"pinned memory is sent and filled", [&] { CopyIn(first_); },
       [&] { cudaMemcpyAsync(pinned_, y_, 64, cudaMemcpyDeviceToHost, second_); },
       "a copy writes bytes that a copy.* reads"},
      {"two results in one place", [&] { Use(first_); }, [&] { Use(second_); },
       "AddKernel.* writes bytes that .*AddKernel.* writes"},
      {"a fill", [&] { cudaMemsetAsync(x_ + 8, 0, 4, first_); },
       [&] { cudaMemcpyAsync(pinned_, x_, 64, cudaMemcpyDeviceToHost, second_); },
       "a copy reads bytes that a fill.* writes"},
      {"a pointer in a struct", [&] { CopyIn(first_); },
       [&] {
         FillHidden({4, x_}, second_);
       },
       "FillHidden.* reads bytes that a copy.* writes"},
      {"a product", [&] { CopyIn(first_); }, [&] { square(second_); },
       "cublasSgemm reads bytes that a copy.* writes"},
      {"the result of a product", [&] { square(first_); }, [&] { Use(second_); },
       "AddKernel.* writes bytes that cublasSgemm.* writes"},
      {"the default stream waits for blocking streams only", [&] { CopyIn(first_); },
       [&] { Use(nullptr); }, "AddKernel.* reads bytes that a copy"},
      {"an event that was recorded too early",
       [&] {
         Record(first_);
         CopyIn(first_);
       },
       [&] {
         Await(second_);
         Use(second_);
       },
       "AddKernel.* reads bytes that a copy"},
      {"the other stream was waited for",
       [&] {
         CopyIn(first_);
         cudaStreamSynchronize(second_);
       },
       [&] { Use(second_); }, "AddKernel.* reads bytes that a copy"},
  };
  for (const Case& c : cases) {
    EXPECT_DEATH(
        {
          c.first();
          c.second();
        },
        testing::ContainsRegex(std::string("race between streams: .*") + c.message))
        << c.what;
  }
}

TEST_F(StreamOrderTest, FindsItInGraphs) {
  ASSERT_EQ(cudaStreamBeginCapture(first_, cudaStreamCaptureModeRelaxed), cudaSuccess);
  Use(first_);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(first_, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  CopyIn(second_);
  EXPECT_DEATH(cudaGraphLaunch(exec, first_), "AddKernel.* reads bytes that a copy");
  Record(second_);
  Await(first_);
  EXPECT_EQ(cudaGraphLaunch(exec, first_), cudaSuccess);
  EXPECT_DEATH(CopyIn(second_), "a copy writes bytes that .*AddKernel.* reads");
  EXPECT_EQ(cudaStreamSynchronize(first_), cudaSuccess);
  CopyIn(second_);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(StreamOrderTest, AllowsWhatIsOrdered) {
  const std::function<void()> waits[] = {
      [&] { EXPECT_EQ(cudaStreamSynchronize(first_), cudaSuccess); },
      [&] { EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess); },
      [&] {
        Record(first_);
        EXPECT_EQ(cudaEventSynchronize(event_), cudaSuccess);
      },
      [&] {
        while (cudaStreamQuery(first_) == cudaErrorNotReady) continue;
      },
      [&] {
        Record(first_);
        while (cudaEventQuery(event_) == cudaErrorNotReady) continue;
      },
      [&] {
        Record(first_);
        Await(second_);
      },
  };
  for (const auto& wait : waits) {
    for (const uint64_t seed : {0, 1, 2}) {
      OnwardEmuSeed(seed);
      CopyIn(first_);
      wait();
      Use(second_);
      Record(second_);
      Await(first_);
    }
  }
}

TEST_F(StreamOrderTest, AllowsTwoReadersAndNeighbours) {
  Use(first_);
  ASSERT_EQ(cudaMemcpyAsync(pinned_, x_, 64, cudaMemcpyDeviceToHost, second_), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(x_, 0, 32, first_), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(x_ + 8, 0, 32, second_), cudaSuccess);
}

// Through a third stream, and through the default one.
TEST_F(StreamOrderTest, OrderIsPassedOn) {
  cudaStream_t blocking = nullptr;
  ASSERT_EQ(cudaStreamCreate(&blocking), cudaSuccess);
  CopyIn(first_);
  Record(first_);
  Await(blocking);
  Use(nullptr);
  EXPECT_DEATH(CopyIn(second_), "race between streams");
  Record(nullptr);
  Await(second_);
  CopyIn(second_);
  ASSERT_EQ(cudaStreamDestroy(blocking), cudaSuccess);
}

TEST_F(StreamOrderTest, CanBeLetBe) {
  OnwardEmuCheckOrder(0);
  CopyIn(first_);
  Use(second_);
  OnwardEmuCheckOrder(1);
}

}  // namespace
}  // namespace onward::cuda
