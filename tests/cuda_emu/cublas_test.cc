// SPDX-License-Identifier: Apache-2.0
// The fake of cuBLAS multiplies, in stream order, and refuses what cuBLAS refuses.
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/cuda_emu/device_array.h"

namespace onward::cuda {
namespace {

class CublasTest : public EmulatorTest {
 protected:
  void SetUp() override {
    EmulatorTest::SetUp();
    ASSERT_EQ(cublasCreate(&handle_), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cublasSetStream(handle_, stream_), CUBLAS_STATUS_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(cublasDestroy(handle_), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    EmulatorTest::TearDown();
  }

  cublasHandle_t handle_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

constexpr int kM = 3, kN = 4, kK = 5, kBatch = 2;

template <class T>
std::vector<T> Numbers(int n, int seed) {
  std::vector<T> values(n);
  for (int i = 0; i < n; ++i) {
    values[i] = static_cast<T>(static_cast<float>((i * 7 + seed) % 11 - 5) * 0.5f);
  }
  return values;
}

template <class T>
cudaDataType TypeOf() {
  if (std::is_same_v<T, double>) return CUDA_R_64F;
  if (std::is_same_v<T, __half>) return CUDA_R_16F;
  return std::is_same_v<T, __nv_bfloat16> ? CUDA_R_16BF : CUDA_R_32F;
}

// Column-major A(i, p), stored plain or transposed, with room between columns.
template <class T>
double At(const std::vector<T>& a, bool transposed, int leading, int row, int column) {
  return static_cast<double>(
      static_cast<float>(transposed ? a[row * leading + column] : a[column * leading + row]));
}

template <class T, class S>
void ExpectProducts(cublasHandle_t handle, cudaStream_t stream, cublasComputeType_t compute) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const int lda = (ta ? kK : kM) + 1, ldb = (tb ? kN : kK) + 2, ldc = kM + 1;
      const int size_a = lda * (ta ? kM : kK), size_b = ldb * (tb ? kK : kN), size_c = ldc * kN;
      const std::vector<T> a = Numbers<T>(size_a * kBatch, 1), b = Numbers<T>(size_b * kBatch, 2);
      const std::vector<T> c = Numbers<T>(size_c * kBatch, 3);
      DeviceArray<T> da(a), db(b), dc(c);
      S alpha = 2, beta = 0.5;
      ASSERT_EQ(cublasGemmStridedBatchedEx(handle, ta ? CUBLAS_OP_T : CUBLAS_OP_N,
                                           tb ? CUBLAS_OP_T : CUBLAS_OP_N, kM, kN, kK, &alpha,
                                           da.get(), TypeOf<T>(), lda, size_a, db.get(),
                                           TypeOf<T>(), ldb, size_b, &beta, dc.get(), TypeOf<T>(),
                                           ldc, size_c, kBatch, compute, CUBLAS_GEMM_DEFAULT),
                CUBLAS_STATUS_SUCCESS);
      alpha = beta = std::numeric_limits<S>::quiet_NaN();  // were read by the call
      ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      const std::vector<T> result = dc.Values();
      for (int i = 0; i < kBatch; ++i) {
        const std::vector<T> ai(a.begin() + i * size_a, a.begin() + (i + 1) * size_a);
        const std::vector<T> bi(b.begin() + i * size_b, b.begin() + (i + 1) * size_b);
        for (int row = 0; row < kM; ++row) {
          for (int column = 0; column < kN; ++column) {
            double sum = 0;
            for (int p = 0; p < kK; ++p)
              sum += At(ai, ta, lda, row, p) * At(bi, tb, ldb, p, column);
            const int at = i * size_c + column * ldc + row;
            const double expected = 2 * sum + 0.5 * static_cast<float>(c[at]);
            EXPECT_NEAR(static_cast<float>(result[at]), expected, sizeof(T) == 2 ? 0.2 : 1e-5);
          }
        }
      }
    }
  }
}

TEST_F(CublasTest, MultipliesInAllTypesAndLayouts) {
  ExpectProducts<float, float>(handle_, stream_, CUBLAS_COMPUTE_32F);
  ExpectProducts<double, double>(handle_, stream_, CUBLAS_COMPUTE_64F);
  ExpectProducts<__half, float>(handle_, stream_, CUBLAS_COMPUTE_32F);
  ExpectProducts<__nv_bfloat16, float>(handle_, stream_, CUBLAS_COMPUTE_32F);
}

TEST_F(CublasTest, WorksInStreamOrderAndDoesNotReadCWithoutBeta) {
  DeviceArray<float> a(std::vector<float>{2}), c(1);
  const float one = 1, zero = 0;
  float early = -1;
  ASSERT_EQ(cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a.get(), 1, a.get(), 1,
                        &zero, c.get(), 1),
            CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cudaMemcpyAsync(&early, c.get(), 4, cudaMemcpyDeviceToHost, stream_), cudaSuccess);
  EXPECT_EQ(early, -1);
  EXPECT_EQ(Counters().library_calls, 0);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(early, 4);
  EXPECT_EQ(Counters().library_calls, 1);
}

TEST_F(CublasTest, RefusesWrongArguments) {
  DeviceArray<float> a(100);
  const float one = 1;
  const auto gemm = [&](cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, int lda,
                        int ldb, int ldc, const float* alpha = nullptr) {
    return cublasSgemm(handle_, ta, tb, m, n, k, alpha == nullptr ? &one : alpha, a.get(), lda,
                       a.get(), ldb, &one, a.get() + 50, ldc);
  };
  const auto kPlain = CUBLAS_OP_N, kFlipped = CUBLAS_OP_T;
  EXPECT_EQ(gemm(kPlain, kPlain, 2, 3, 4, 2, 4, 2), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(gemm(kPlain, kPlain, 2, 3, 4, 1, 4, 2), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gemm(kPlain, kPlain, 2, 3, 4, 2, 3, 2), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gemm(kPlain, kPlain, 2, 3, 4, 2, 4, 1), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gemm(kFlipped, kPlain, 2, 3, 4, 2, 4, 2), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gemm(kFlipped, kFlipped, 2, 3, 4, 4, 2, 2), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gemm(kFlipped, kFlipped, 2, 3, 4, 4, 3, 2), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(gemm(kPlain, kPlain, -1, 3, 4, 2, 4, 2), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gemm(kPlain, kPlain, 0, 3, 4, 0, 4, 1), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gemm(kPlain, kPlain, 0, 3, 4, 1, 4, 1), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasSgemm(handle_, kPlain, kPlain, 1, 1, 1, nullptr, a.get(), 1, a.get(), 1, &one,
                        a.get(), 1),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(
      cublasSgemm(nullptr, kPlain, kPlain, 1, 1, 1, &one, a.get(), 1, a.get(), 1, &one, a.get(), 1),
      CUBLAS_STATUS_NOT_INITIALIZED);
  EXPECT_EQ(cublasGemmEx(handle_, kPlain, kPlain, 1, 1, 1, &one, a.get(), CUDA_R_32F, 1, a.get(),
                         CUDA_R_16F, 1, &one, a.get(), CUDA_R_32F, 1, CUBLAS_COMPUTE_32F,
                         CUBLAS_GEMM_DEFAULT),
            CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_STREQ(cublasGetStatusName(CUBLAS_STATUS_NOT_SUPPORTED), "CUBLAS_STATUS_NOT_SUPPORTED");
}

TEST_F(CublasTest, CatchesMemoryThatIsTooShortOrOfTheHost) {
  DeviceArray<float> a(16), b(15);
  std::vector<float> host(16);
  const float one = 1, zero = 0;
  const auto gemm = [&](const float* right, float* out) {
    return cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, a.get(), 4, right, 4,
                       &zero, out, 4);
  };
  EXPECT_DEATH(gemm(host.data(), a.get()), "cublasSgemm: B is the host pointer");
  EXPECT_DEATH(gemm(b.get(), a.get()), "cublasSgemm: B needs 64 bytes, but .* 60");
  EXPECT_DEATH(gemm(a.get(), b.get()), "cublasSgemm: C needs 64 bytes");
}

class CublasWorkspaceTest : public CublasTest {
 protected:
  static constexpr size_t kBytes = 1 << 16;

  void Give(const DeviceArray<float>& workspace) {
    ASSERT_EQ(cublasSetWorkspace(handle_, workspace.get(), kBytes), CUBLAS_STATUS_SUCCESS);
  }
  cublasStatus_t Square(float* a, float* c) {
    const float one = 1, zero = 0;
    return cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a, 1, a, 1, &zero, c, 1);
  }

  DeviceArray<float> room_{kBytes / sizeof(float)}, x_{std::vector<float>{3, 0}};
};

TEST_F(CublasWorkspaceTest, HoldsAnythingAfterAProduct) {
  for (const int strict : {0, 1}) {
    OnwardEmuStrict(strict);
    ASSERT_EQ(cudaMemset(room_.get(), 0, kBytes), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    Give(room_);
    ASSERT_EQ(Square(x_.get(), x_.get() + 1), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_EQ(x_.Values()[1], 9);
    const std::vector<float> left = room_.Values();
    EXPECT_TRUE(std::isnan(left.front()));
    EXPECT_TRUE(std::isnan(left.back()));
    EXPECT_EQ(std::isnan(left[left.size() / 2]), strict > 0);
  }
}

TEST_F(CublasWorkspaceTest, MayNotLieOverAnOperand) {
  Give(room_);
  EXPECT_DEATH(Square(room_.get() + 5, x_.get()), "the workspace lies over A");
  EXPECT_DEATH(Square(x_.get(), room_.get()), "the workspace lies over C");
}

TEST_F(CublasWorkspaceTest, StaysUntilTheProductIsDone) {
  {
    DeviceArray<float> room(kBytes / sizeof(float));
    Give(room);
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), cudaSuccess);
    ASSERT_EQ(Square(x_.get(), x_.get() + 1), CUBLAS_STATUS_SUCCESS);
  }
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  EXPECT_DEATH(
      {
        cudaGraphLaunch(exec, stream_);
        cudaStreamSynchronize(stream_);
      },
      "cublasSgemm runs with memory that was freed");
  EXPECT_DEATH(Square(x_.get(), x_.get() + 1), "the workspace points to memory that is not");
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
}

TEST_F(CublasWorkspaceTest, GoesWhenAStreamIsSet) {
  Give(room_);
  OnwardEmuStrict(1);
  ASSERT_EQ(Square(x_.get(), x_.get() + 1), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasSetStream(handle_, stream_), CUBLAS_STATUS_SUCCESS);
  EXPECT_DEATH(Square(x_.get(), x_.get() + 1), "nobody gave the handle a workspace");
  OnwardEmuStrict(0);
  EXPECT_EQ(Square(x_.get(), x_.get() + 1), CUBLAS_STATUS_SUCCESS);
}

TEST_F(CublasTest, RoundsToTf32OnlyWhenAsked) {
  const float x = 1.0f + 1.0f / 4096;  // 13 bits
  DeviceArray<float> a(std::vector<float>{x}), c(1);
  const float one = 1, zero = 0;
  const auto square = [&] {
    EXPECT_EQ(cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a.get(), 1, a.get(), 1,
                          &zero, c.get(), 1),
              CUBLAS_STATUS_SUCCESS);
    cudaStreamSynchronize(stream_);
    return c.Values()[0];
  };
  EXPECT_EQ(square(), x * x);
  ASSERT_EQ(cublasSetMathMode(handle_, CUBLAS_TF32_TENSOR_OP_MATH), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(square(), 1);
}

TEST_F(CublasTest, PointerArraysAreReadOnTheDevice) {
  DeviceArray<float> a(std::vector<float>{2, 3}), c(2);
  DeviceArray<const float*> in(std::vector<const float*>{a.get(), a.get() + 1});
  DeviceArray<float*> out(std::vector<float*>{c.get() + 1, c.get()});
  const float one = 1, zero = 0;
  ASSERT_EQ(cublasSgemmBatched(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, in.get(), 1,
                               in.get(), 1, &zero, out.get(), 1, 2),
            CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(c.Values(), (std::vector<float>{9, 4}));
}

TEST_F(CublasTest, FailsWhenAsked) {
  DeviceArray<float> a(std::vector<float>{2});
  const float one = 1;
  OnwardEmuFailCall(kOnwardEmuLibrary, 2);
  const auto call = [&] {
    return cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a.get(), 1, a.get(), 1,
                       &one, a.get(), 1);
  };
  EXPECT_EQ(call(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(call(), CUBLAS_STATUS_EXECUTION_FAILED);
  EXPECT_EQ(call(), CUBLAS_STATUS_SUCCESS);
}

}  // namespace
}  // namespace onward::cuda
