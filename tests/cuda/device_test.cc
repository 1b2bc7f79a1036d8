// SPDX-License-Identifier: Apache-2.0
// The CUDA device's memory, streams and chains, on the emulator; and the library for GPUs, which
// says here that there is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "core/tensor/dispatch.h"
#include "tests/cuda/emulated.h"
#include "tests/cuda_emu/control.h"
#include "tests/support/case_draws.h"

namespace onward::device_test {

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

TEST(CudaStream, QueuesWhatWasPutDownAsOftenAsAsked) {
  Stream& stream = EmulatedStream();
  constexpr int64_t kBytes = 1000;
  const auto pinned = Emulated().AllocateHost(2 * kBytes);
  const auto there = Emulated().Allocate(2 * kBytes);
  ASSERT_TRUE(pinned.ok() && there.ok());
  char* const host = static_cast<char*>(pinned->get());
  char* const device = static_cast<char*>(there->get());
  std::memset(host, 0, 2 * kBytes);
  for (const bool keep : {false, true}) {
    ASSERT_TRUE(stream.BeginRecording().ok());
    ASSERT_TRUE(stream.CopyPinnedIn(device, host, kBytes).ok());
    ASSERT_TRUE(stream.Copy(device + kBytes, device, kBytes).ok());
    ASSERT_TRUE(stream.CopyPinnedOut(host + kBytes, device + kBytes, kBytes).ok());
    auto recording = stream.EndRecording(keep);
    ASSERT_TRUE(recording.ok()) << recording.status();
    ASSERT_TRUE(stream.Synchronize().ok());
    EXPECT_EQ(host[kBytes], 0);  // put down, not done
    EXPECT_EQ(*recording != nullptr, keep);
    for (char run = 1; keep && run < 4; ++run) {
      std::memset(host, run, kBytes);
      ASSERT_TRUE(stream.Replay(**recording).ok());
      ASSERT_TRUE(stream.Synchronize().ok());
      EXPECT_EQ(host[kBytes], run);
      EXPECT_EQ(host[2 * kBytes - 1], run);
    }
  }
}

TEST(CudaStream, WaitsForAnother) {
  auto other = Emulated().MakeStream();
  ASSERT_TRUE(other.ok());
  const auto memory = Emulated().Allocate(sizeof(int));
  for (int round = 0; round < 5; ++round) {
    const int before = round;
    int after = -1;
    ASSERT_TRUE((*other)->CopyIn(memory->get(), &before, sizeof(int)).ok());
    ASSERT_TRUE(EmulatedStream().WaitFor(**other).ok());
    ASSERT_TRUE(EmulatedStream().CopyOut(&after, memory->get(), sizeof(int)).ok());
    ASSERT_TRUE(EmulatedStream().Synchronize().ok());
    EXPECT_EQ(after, round);
  }
}

// That the runtime orders what it queues on two streams is looked at in every test.
TEST(CudaStream, IsARaceWithoutWaiting) {
  const auto other = Emulated().MakeStream();
  const auto memory = Emulated().Allocate(sizeof(int));
  ASSERT_TRUE(other.ok() && memory.ok());
  EXPECT_DEATH(
      {
        const int value = 1;
        int back = 0;
        (*other)->CopyIn(memory->get(), &value, sizeof(int)).IgnoreError();
        EmulatedStream().CopyOut(&back, memory->get(), sizeof(int)).IgnoreError();
      },
      "race between streams");
}

TEST(CudaStream, CopiesUnlessSomethingIsWrong) {
  Stream& stream = EmulatedStream();
  const auto words = [&](std::vector<int32_t> values) {
    return *ToDevice(Emulated(), stream,
                     Tensor::FromValues<int32_t>(Shape{static_cast<int64_t>(values.size())},
                                                 absl::MakeConstSpan(values)));
  };
  const auto word = [](Tensor& t) { return static_cast<uint32_t*>(t.raw()); };
  Fault fault;
  for (const bool bad : {false, true}) {
    for (const bool faulty : {false, true}) {
      // 1003: neither whole words nor whole vectors.
      for (const int64_t bytes : {0, 1, 4, 1003, 4096}) {
        fault.step = faulty ? 7 : 0;
        std::vector<int32_t> flags(300, 0);
        flags[299] = bad;
        Tensor on_device = words(flags), stop = words({0});
        Tensor from = *ToDevice(Emulated(), stream, Counted(2000)),
               to = *ToDevice(Emulated(), stream, Tensor::Zeros(DType::kInt32, Shape{2000}));
        const auto place = Emulated().Allocate(sizeof(Fault));
        ASSERT_TRUE(stream.CopyIn(place->get(), &fault, sizeof(Fault)).ok());
        ASSERT_TRUE(
            stream.SetStop(word(on_device), 300, static_cast<Fault*>(place->get()), word(stop))
                .ok());
        ASSERT_TRUE(stream.CopyUnless(word(stop), to.raw(), from.raw(), bytes).ok());
        const Tensor found = *FromDevice(stream, to);
        Tensor expected = Tensor::Zeros(DType::kInt32, Shape{2000});
        if (!bad && !faulty) std::memcpy(expected.raw(), Counted(2000).raw(), bytes);
        EXPECT_TRUE(Identical(found, expected)) << bad << faulty << bytes;
      }
    }
  }
}

bool IsFinite(const Tensor& tensor) {
  Tensor bad = *ToDevice(Emulated(), EmulatedStream(), Tensor::Zeros(DType::kInt32, Shape{1}));
  EXPECT_TRUE(EmulatedStream().FlagInfinite(tensor, static_cast<uint32_t*>(bad.raw())).ok());
  return FromDevice(EmulatedStream(), bad)->data<int32_t>()[0] == 0;
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
        EXPECT_EQ(IsFinite(*tensor), std::isfinite(odd)) << DTypeName(dtype) << " " << odd << n;
      }
    }
  }
  auto empty = NewOnDevice(Emulated(), DType::kFloat, Shape{0});
  EXPECT_TRUE(IsFinite(*empty));
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

TEST(CudaDevice, SaysWhatTheMachineLacks) {
  struct Case {
    const char *variable, *value, *message;
  };
  const Case cases[] = {
      {"ONWARD_EMU_DRIVER", "0", "no NVIDIA driver is installed"},
      {"ONWARD_EMU_DRIVER", "12040", "the NVIDIA driver serves CUDA 12.4 at most"},
      {"ONWARD_EMU_DEVICES", "0", "no NVIDIA GPU: no CUDA-capable device is detected"},
      {"ONWARD_EMU_CAPABILITY", "70", "cuda:0 has compute capability 7.0, Onward needs 7.5"},
      {"ONWARD_EMU_CAPABILITY", "75", ""},
      {"ONWARD_EMU_CAPABILITY", "120", ""},
  };
  const auto reset = EmulatorFunction<decltype(OnwardEmuReset)>("OnwardEmuReset");
  for (const Case& c : cases) {
    setenv(c.variable, c.value, 1);
    reset();
    unsetenv(c.variable);
    const absl::Status status = OpenDevice(EmulatedCuda(), {}).status();
    EXPECT_EQ(status.ok(), *c.message == '\0') << c.value;
    EXPECT_EQ(absl::IsFailedPrecondition(status), !status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
  reset();
}

TEST(CudaPlugin, SaysThatThereIsNoGpu) {
  if (!std::filesystem::exists(BuiltCuda())) GTEST_SKIP() << "built without nvcc";
  const auto device = OpenDevice(BuiltCuda(), {});
  if (device.ok()) GTEST_SKIP() << "there is a GPU";
  EXPECT_EQ(device.status().code(), absl::StatusCode::kFailedPrecondition) << device.status();
  EXPECT_THAT(device.status().ToString(), HasSubstr("no NVIDIA"));
}

}  // namespace onward::device_test
