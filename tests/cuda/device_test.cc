// SPDX-License-Identifier: Apache-2.0
// The CUDA device's memory, streams and chains, on the emulator; and the library for GPUs, which
// says here that there is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "core/tensor/dispatch.h"
#include "tests/cuda/emulated.h"
#include "tests/support/case_draws.h"

namespace onward {
namespace {

using testing::HasSubstr;

Tensor Counted(int64_t n) {
  Tensor t(DType::kInt32, Shape{n});
  std::iota(t.data<int32_t>(), t.data<int32_t>() + n, 0);
  return t;
}

TEST(CudaStream, TakesBytesAtOnceAndGivesThemBack) {
  // From nothing over less than a piece of pinned memory to more than there are of them.
  for (const int64_t n : {0, 1, 1000, 1 << 18, 3 << 19}) {
    const Tensor original = Counted(n);
    Tensor given = original.Clone();
    auto on_device = ToDevice(Emulated(), EmulatedStream(), given);
    ASSERT_TRUE(on_device.ok()) << on_device.status();
    if (n > 0) std::memset(given.raw(), 0, given.bytes());
    auto again = NewOnDevice(Emulated(), DType::kInt32, original.shape());
    ASSERT_TRUE(again.ok());
    ASSERT_TRUE(EmulatedStream().Copy(again->raw(), on_device->raw(), original.bytes()).ok());
    auto back = FromDevice(EmulatedStream(), *again);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(Identical(*back, original)) << n;
  }
}

TEST(CudaStream, ManySmallCopiesBetweenTwoWaits) {
  constexpr int kCount = 500;
  auto memory = NewOnDevice(Emulated(), DType::kInt32, Shape{kCount});
  ASSERT_TRUE(memory.ok()) << memory.status();
  std::vector<int32_t> back(kCount, -1);
  for (int32_t i = 0; i < kCount; ++i) {
    int32_t* const at = memory->data<int32_t>() + i;
    ASSERT_TRUE(EmulatedStream().CopyIn(at, &i, sizeof(i)).ok());
    ASSERT_TRUE(EmulatedStream().CopyOut(&back[i], at, sizeof(i)).ok());
  }
  ASSERT_TRUE(EmulatedStream().Synchronize().ok());
  for (int32_t i = 0; i < kCount; ++i) ASSERT_EQ(back[i], i);
}

TEST(CudaStream, DoesWorkAsAWholeOrNotAtAll) {
  Stream& stream = EmulatedStream();
  const int64_t n = 3 << 19;  // more than the pinned memory that is used in turn
  const Tensor first = Counted(n), second = Tensor::Zeros(DType::kInt32, Shape{n});
  for (const bool keep : {true, false, true}) {
    auto to = ToDevice(Emulated(), stream, first);
    ASSERT_TRUE(to.ok() && stream.Synchronize().ok());
    Tensor early = first.Clone();
    ASSERT_TRUE(stream.Begin().ok());
    ASSERT_TRUE(stream.CopyIn(to->raw(), second.raw(), second.bytes()).ok());
    ASSERT_TRUE(stream.CopyOut(early.raw(), to->raw(), early.bytes()).ok());
    const absl::Status ended = stream.End(keep);
    ASSERT_TRUE(ended.ok()) << ended;
    const auto back = FromDevice(stream, *to);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(Identical(*back, keep ? second : first)) << keep;
    EXPECT_TRUE(Identical(early, keep ? second : first)) << keep;
  }
}

TEST(CudaStream, FindsWhatIsNotFinite) {
  for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kFloat16, DType::kBFloat16}) {
    for (const double odd : {1.0, std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(), std::nan("")}) {
      for (const int64_t n : {1, 700, 5000}) {
        std::vector<double> values(n, 65000.0);
        values[n / 2] = odd;
        const Tensor host = Converted(Doubles(Shape{n}, values), dtype);
        auto tensor = ToDevice(Emulated(), EmulatedStream(), host);
        ASSERT_TRUE(tensor.ok());
        const auto finite = EmulatedStream().AllFinite(*tensor);
        ASSERT_TRUE(finite.ok()) << finite.status();
        EXPECT_EQ(*finite, std::isfinite(odd)) << DTypeName(dtype) << " " << odd << " " << n;
      }
    }
  }
  auto empty = NewOnDevice(Emulated(), DType::kFloat, Shape{0});
  EXPECT_TRUE(EmulatedStream().AllFinite(*empty).value());
}

TEST(CudaDevice, SaysThatMemoryIsShort) {
  const auto memory = Emulated().Allocate(size_t{1} << 60);
  EXPECT_EQ(memory.status().code(), absl::StatusCode::kResourceExhausted) << memory.status();
  EXPECT_THAT(memory.status().ToString(), HasSubstr("cudaErrorMemoryAllocation"));
  EXPECT_TRUE(Emulated().Allocate(64).ok());
}

TEST(CudaDevice, NamesGpusThatAreNotThere) {
  DeviceOptions options;
  options.index = 99;
  const auto device = OpenDevice(EmulatedCuda(), options);
  EXPECT_EQ(device.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(device.status().ToString(), HasSubstr("cuda:99"));
}

TEST(CudaPlugin, SaysThatThereIsNoGpu) {
  if (!std::filesystem::exists(BuiltCuda())) GTEST_SKIP() << "built without nvcc";
  const auto device = OpenDevice(BuiltCuda(), {});
  if (device.ok()) GTEST_SKIP() << "there is a GPU";
  EXPECT_EQ(device.status().code(), absl::StatusCode::kFailedPrecondition) << device.status();
  EXPECT_THAT(device.status().ToString(), HasSubstr("no NVIDIA"));
}

}  // namespace
}  // namespace onward
