// SPDX-License-Identifier: Apache-2.0
// Captured graphs run what was captured, in an order that their edges allow.
#include <cublas_v2.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "tests/cuda_emu/device_array.h"
#include "tests/cuda_emu/kernels.h"

namespace onward::cuda {
namespace {

class GraphTest : public EmulatorTest {
 protected:
  void SetUp() override {
    EmulatorTest::SetUp();
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&other_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaEventCreateWithFlags(&fork_, cudaEventDisableTiming), cudaSuccess);
    ASSERT_EQ(cudaEventCreateWithFlags(&join_, cudaEventDisableTiming), cudaSuccess);
  }
  void TearDown() override {
    if (exec_ != nullptr) cudaGraphExecDestroy(exec_);
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
    cudaEventDestroy(fork_);
    cudaEventDestroy(join_);
    cudaStreamDestroy(stream_);
    cudaStreamDestroy(other_);
    EmulatorTest::TearDown();
  }

  void Begin() {
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
  }
  void EndAndInstantiate() {
    ASSERT_EQ(cudaStreamEndCapture(stream_, &graph_), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&exec_, graph_, 0), cudaSuccess);
  }
  void Fork() {
    ASSERT_EQ(cudaEventRecord(fork_, stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(other_, fork_, 0), cudaSuccess);
  }
  void Join() {
    ASSERT_EQ(cudaEventRecord(join_, other_), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(stream_, join_, 0), cudaSuccess);
  }
  cudaError_t Double(const DeviceArray<float>& x, cudaStream_t stream) {
    return Add(1, x.get(), x.get(), x.get(), stream);
  }

  cudaStream_t stream_ = nullptr, other_ = nullptr;
  cudaEvent_t fork_ = nullptr, join_ = nullptr;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

TEST_F(GraphTest, RunsWhatWasCapturedAsOftenAsItIsLaunched) {
  DeviceArray<float> x(std::vector<float>{1}), y(std::vector<float>{0});
  float* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&pinned), 4), cudaSuccess);
  Begin();
  ASSERT_EQ(Double(x, stream_), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(y.get(), 0, 4, stream_), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(pinned, x.get(), 4, cudaMemcpyDeviceToHost, stream_), cudaSuccess);
  cudaStreamCaptureStatus status;
  ASSERT_EQ(cudaStreamIsCapturing(stream_, &status), cudaSuccess);
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  EndAndInstantiate();
  size_t nodes = 0;
  ASSERT_EQ(cudaGraphGetNodes(graph_, nullptr, &nodes), cudaSuccess);
  EXPECT_EQ(nodes, 3u);
  EXPECT_EQ(Counters().launches, 0);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cudaGraphLaunch(exec_, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(*pinned, 8);
  EXPECT_EQ(Counters().launches, 3);
  EXPECT_EQ(Counters().graph_launches, 3);
  ASSERT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST_F(GraphTest, LibraryCallsAreCaptured) {
  cublasHandle_t handle = nullptr;
  ASSERT_EQ(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasSetStream(handle, stream_), CUBLAS_STATUS_SUCCESS);
  DeviceArray<float> x(std::vector<float>{3});
  float two = 2, zero = 0;
  Begin();
  ASSERT_EQ(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &two, x.get(), 1, x.get(), 1,
                        &zero, x.get(), 1),
            CUBLAS_STATUS_SUCCESS);
  two = 100;  // was read at the call
  EndAndInstantiate();
  ASSERT_EQ(cudaGraphLaunch(exec_, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(x.Values()[0], 18);
  EXPECT_EQ(cublasDestroy(handle), CUBLAS_STATUS_SUCCESS);
}

// b = 2a on one branch, c = 2a on the other, then d = b + c.
TEST_F(GraphTest, BranchesRunInAnyOrderTheEdgesAllow) {
  DeviceArray<float> a(std::vector<float>{1}), b(1), c(1), d(1);
  Begin();
  ASSERT_EQ(Double(a, stream_), cudaSuccess);
  Fork();
  ASSERT_EQ(Add(1, a.get(), a.get(), b.get(), stream_), cudaSuccess);
  ASSERT_EQ(Add(1, a.get(), a.get(), c.get(), other_), cudaSuccess);
  Join();
  ASSERT_EQ(Add(1, b.get(), c.get(), d.get(), stream_), cudaSuccess);
  EndAndInstantiate();
  for (int seed = 0; seed < 6; ++seed) {
    OnwardEmuSeed(seed);
    const float one = 1;
    ASSERT_EQ(cudaMemcpyAsync(a.get(), &one, 4, cudaMemcpyHostToDevice, stream_), cudaSuccess);
    ASSERT_EQ(cudaGraphLaunch(exec_, stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_EQ(d.Values()[0], 8);
  }
}

TEST_F(GraphTest, MissingJoinIsAnError) {
  DeviceArray<float> x(std::vector<float>{1});
  Begin();
  Fork();
  ASSERT_EQ(Double(x, other_), cudaSuccess);
  EXPECT_EQ(cudaStreamEndCapture(other_, &graph_), cudaErrorStreamCaptureUnmatched);
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph_), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(graph_, nullptr);
  EXPECT_EQ(Double(x, other_), cudaSuccess);  // both streams work again
  EXPECT_EQ(cudaStreamSynchronize(other_), cudaSuccess);
}

TEST_F(GraphTest, WaitingBreaksTheCapture) {
  DeviceArray<float> x(std::vector<float>{1});
  float host = 0;
  const std::function<cudaError_t()> forbidden[] = {
      [&] { return cudaStreamSynchronize(stream_); },
      [&] { return cudaStreamQuery(stream_); },
      [&] { return cudaDeviceSynchronize(); },
      [&] { return cudaMemcpy(&host, x.get(), 4, cudaMemcpyDeviceToHost); },
      [&] {
        void* data = nullptr;
        return cudaMalloc(&data, 4);
      },
  };
  for (const auto& call : forbidden) {
    Begin();
    ASSERT_EQ(Double(x, stream_), cudaSuccess);
    EXPECT_EQ(call(), cudaErrorStreamCaptureUnsupported);
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph_), cudaErrorStreamCaptureInvalidated);
  }
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph_), cudaErrorIllegalState);
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal),
            cudaErrorStreamCaptureUnsupported);
}

TEST_F(GraphTest, RelaxedCaptureAllowsAllocation) {
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), cudaSuccess);
  DeviceArray<float> x(4);
  ASSERT_EQ(cudaMemsetAsync(x.get(), 0, 16, stream_), cudaSuccess);
  EndAndInstantiate();
  ASSERT_EQ(cudaGraphLaunch(exec_, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(x.Values(), std::vector<float>(4, 0));
}

TEST_F(GraphTest, MemoryFreedUnderAGraphIsCaught) {
  float* data = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&data), 4), cudaSuccess);
  Begin();
  ASSERT_EQ(Add(1, data, data, data, stream_), cudaSuccess);
  EndAndInstantiate();
  ASSERT_EQ(cudaFree(data), cudaSuccess);
  EXPECT_DEATH(
      {
        cudaGraphLaunch(exec_, stream_);
        cudaStreamSynchronize(stream_);
      },
      "AddKernel.* memory that was freed after it was launched or captured");
}

TEST_F(GraphTest, UpdatesWhereTheEdgesStayTheSame) {
  DeviceArray<float> x(std::vector<float>{1}), y(std::vector<float>{5});
  Begin();
  ASSERT_EQ(Double(x, stream_), cudaSuccess);
  EndAndInstantiate();
  cudaGraph_t second = nullptr, longer = nullptr;
  Begin();
  ASSERT_EQ(Double(y, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream_, &second), cudaSuccess);
  Begin();
  ASSERT_EQ(Double(y, stream_), cudaSuccess);
  ASSERT_EQ(Double(y, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream_, &longer), cudaSuccess);
  cudaGraphExecUpdateResultInfo info;
  EXPECT_EQ(cudaGraphExecUpdate(exec_, longer, &info), cudaErrorGraphExecUpdateFailure);
  EXPECT_EQ(cudaGraphExecUpdate(exec_, second, &info), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec_, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(x.Values()[0], 1);
  EXPECT_EQ(y.Values()[0], 10);
  cudaGraphDestroy(second);
  cudaGraphDestroy(longer);
}

TEST_F(GraphTest, FailsWhenAsked) {
  DeviceArray<float> x(std::vector<float>{1});
  Begin();
  ASSERT_EQ(Double(x, stream_), cudaSuccess);
  EndAndInstantiate();
  OnwardEmuFailCall(kOnwardEmuLaunch, 1);
  EXPECT_EQ(cudaGraphLaunch(exec_, stream_), cudaErrorLaunchOutOfResources);
  EXPECT_EQ(cudaGraphLaunch(exec_, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(x.Values()[0], 2);
}

}  // namespace
}  // namespace onward::cuda
