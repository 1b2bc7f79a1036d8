// SPDX-License-Identifier: Apache-2.0
// What `onward inspect` says of devices. How --device is read: tests/cli/device_test.cc.
#include "tests/support/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/onnx_io/model.h"
#include "tests/support/far_training.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward::command_test {

using testing::HasSubstr;
using testing::Not;

class Devices : public testing::Test {
 protected:
  Devices() {
    EXPECT_TRUE(WriteModel(TextModel("g (float[N,8] x, float[8,8] w, int64[2] k) => (float[N,8] y, "
                                     "float z, int64[2] j) { a = MatMul(x, w) y = Softmax(a) "
                                     "j = Add(k, k) z = Det(w) }"),
                           path_)
                    .ok());
    EXPECT_TRUE(WriteModel(FarNetwork(), trainable_).ok());
  }
  static CommandResult Run(const std::string& arguments) {
    return RunOnward(BuiltProgram(), arguments);
  }
  const std::string path_ = TemporaryFolder() + "/m.onnx",
                    trainable_ = TemporaryFolder() + "/t.onnx";
};

TEST_F(Devices, AreInspected) {
  const CommandResult text = Run("inspect --device cuda-emu --batch 4 " + path_);
  EXPECT_EQ(text.exit_code, 0) << text.errors;
  for (const char* part :
       {"devices of inference: 2 on cpu, 2 on cuda:0; ",
        "  not on the device: 1 no kernel, 1 small integers", "  cuda:0     MatMul a\n",
        "  cuda:0     Softmax y\n", "  cpu        Det z (no kernel)\n",
        "  cpu        Add j (small integers)\n"}) {
    EXPECT_THAT(text.output, HasSubstr(part));
  }
  const CommandResult json = Run("inspect --device cuda-emu --json " + path_);
  for (const char* part :
       {R"("devices":[{"graph":"inference","problem":"","on":{"cpu":2,"cuda:0":2})",
        R"({"op":"Softmax","name":"y","device":"cuda:0","why":"","graph":1})",
        R"({"op":"Det","name":"z","device":"cpu","why":"no kernel","graph":0})"}) {
    EXPECT_THAT(json.output, HasSubstr(part));
  }
  const CommandResult training = Run("inspect --device cuda-emu " + trainable_);
  EXPECT_THAT(training.output, HasSubstr("devices of training_info[0]: "));
  EXPECT_THAT(training.output, HasSubstr(", 1 graph\n"));
  EXPECT_THAT(training.output, Not(HasSubstr("no kernel")));
  EXPECT_THAT(Run("inspect " + path_).output, Not(HasSubstr("devices of")));
}

}  // namespace onward::command_test
