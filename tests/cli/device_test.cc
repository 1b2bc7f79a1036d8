// SPDX-License-Identifier: Apache-2.0
// --device as a user meets it, on a machine without a GPU: the library for GPUs says so, `auto`
// goes on with the CPU in one line, `cuda` is an error, and without the flag nothing is opened.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "core/onnx_io/model.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward::device_test {

using testing::HasSubstr;
using testing::Not;

class DeviceFlag : public testing::Test {
 protected:
  void SetUp() override {
    std::string numbers = "0.5";
    for (int i = 1; i < 32; ++i) numbers += ", 0." + std::to_string(1 + i % 7);
    const Model model = TextModel("m (float[4, 8] x) => (float y) <float[8, 4] w = {" + numbers +
                                  "}> { a = MatMul(x, w) y = Det(a) }");
    ASSERT_TRUE(WriteModel(model, model_).ok());
  }

  CommandResult Bench(const std::string& flags, const std::string& environment = "") const {
    return RunOnward("env " + environment + " " + BuiltProgram(),
                     "bench " + model_ + " --mode infer --seconds 0.01 " + flags);
  }

  // Whether the library for GPUs was built, and there is none.
  static bool IsBuiltWithoutAGpu() {
    return std::filesystem::exists(BuiltCuda()) && !std::filesystem::exists("/dev/nvidiactl");
  }

  const Scratch scratch_;
  const std::string model_ = scratch_.Path("m.onnx");
};

int LinesOf(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

TEST_F(DeviceFlag, CudaIsAnErrorWithoutADriver) {
  if (!IsBuiltWithoutAGpu()) GTEST_SKIP() << "built without nvcc, or there is a GPU";
  const CommandResult r = Bench("--device cuda");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.errors, HasSubstr("no NVIDIA driver is installed"));
  EXPECT_EQ(r.output, "");
  EXPECT_EQ(Bench("--device cuda:1").exit_code, 2);
  EXPECT_EQ(Bench("--device auto --require-device").exit_code, 2);
}

TEST_F(DeviceFlag, AutoGoesOnWithTheCpuInOneLine) {
  if (!IsBuiltWithoutAGpu()) GTEST_SKIP() << "built without nvcc, or there is a GPU";
  const CommandResult r = Bench("--device auto");
  EXPECT_EQ(r.exit_code, 0) << r.errors;
  EXPECT_EQ(r.errors, "device: cpu (no NVIDIA driver is installed)\n");
}

TEST_F(DeviceFlag, LibrariesOfCudaAreOpenedOnDemandOnly) {
  const CommandResult plain = Bench("", "LD_DEBUG=files");
  EXPECT_EQ(plain.exit_code, 0);
  EXPECT_THAT(plain.errors, HasSubstr("libstdc++"));  // that it lists what is opened
  for (const char* library : {"libonward_cuda", "libcuda", "libcublas", "libcudnn"}) {
    EXPECT_THAT(plain.errors, Not(HasSubstr(library)));
  }
  if (!IsBuiltWithoutAGpu()) return;
  EXPECT_THAT(Bench("--device cuda", "LD_DEBUG=files").errors, HasSubstr("libcudart"));
}

TEST_F(DeviceFlag, UnknownNamesAreRefused) {
  for (const char* name : {"gpu", "cuda:x", "cuda:-1", "cuda:0:1"}) {
    const CommandResult r = Bench(std::string("--device ") + name);
    EXPECT_EQ(r.exit_code, 2) << name;
    EXPECT_THAT(r.errors, HasSubstr("is no device; valid: auto, cpu, cuda, cuda:N")) << name;
  }
  EXPECT_EQ(Bench("--require-device").exit_code, 2);
}

TEST_F(DeviceFlag, FallbacksAreToldInOneLineOrRefused) {
  if (!std::filesystem::exists(EmulatedCuda())) GTEST_SKIP() << "built without CUDA's headers";
  const CommandResult r = Bench("--device cuda-emu");
  EXPECT_EQ(r.exit_code, 0) << r.errors;
  EXPECT_THAT(r.errors, HasSubstr("run on cpu, cuda:0 has no kernel: Det 1\n"));
  EXPECT_EQ(LinesOf(r.errors), 1) << r.errors;
  const CommandResult refused = Bench("--device cuda-emu --require-device");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("1 node cannot run on cuda:0"));
  EXPECT_THAT(refused.errors, HasSubstr("(Det)"));
}

// One name is one size, here as in `bench`.
TEST(InspectDevice, SquareInputsStaySquare) {
  const Scratch scratch;
  const std::string model = scratch.Path("square.onnx");
  ASSERT_TRUE(
      WriteModel(TextModel("m (float[N, N] x) => (float[N, N] y) { y = MatMul(x, x) }"), model)
          .ok());
  EXPECT_THAT(RunOnward(BuiltProgram(), "inspect --device cpu --batch 3 " + model).output,
              HasSubstr("devices of inference: 1 on cpu"));
}

}  // namespace onward::device_test
