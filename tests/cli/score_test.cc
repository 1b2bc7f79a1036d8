// SPDX-License-Identifier: Apache-2.0
// onward score: what it prints where, and its counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_split.h"
#include "core/onnx_io/value_file.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward::score_test {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class Score : public testing::Test {
 protected:
  void Case(const std::string& name, const std::string& node, float expected) {
    const std::string model =
        "<ir_version: 8, opset_import: [\"\" : 18, \"one\" : 1]> "
        "g (float[1] x) => (float[1] y) { y = " +
        node + " (x) }";
    scratch_.Write(name + "/model.onnx", Bytes(TextModel(model)));
    Put(name + "/test_data_set_0/input_0.pb", -1);
    Put(name + "/test_data_set_0/output_0.pb", expected);
  }
  CommandResult Run(const std::string& flags) {
    return RunOnward(BuiltProgram(), "score " + scratch_.Path("") + flags);
  }

 private:
  void Put(const std::string& name, float value) {
    scratch_.Write(name, "");
    ASSERT_TRUE(WriteValueFile(Floats({value}), ValueType::Of(DType::kFloat, Shape{1}), "v",
                               scratch_.Path(name))
                    .ok());
  }
  Scratch scratch_;
};

TEST_F(Score, CountsWhatItCannotRunApart) {
  Case("right", "Abs", 1);
  Case("wrong", "Neg", 5);
  Case("unknown", "one.Riddle", 1);
  const CommandResult text = Run("");
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_THAT(text.output, EndsWith("\n1 passed, 1 failed, 1 unsupported\n"));
  const CommandResult json = Run(" --json");
  EXPECT_EQ(json.exit_code, 1);
  EXPECT_THAT(json.errors, HasSubstr("1 passed, 1 failed, 1 unsupported\n"));
  for (absl::string_view line : absl::StrSplit(json.output, '\n', absl::SkipEmpty())) {
    EXPECT_THAT(std::string(line), StartsWith("{\"case\":"));
    EXPECT_THAT(std::string(line), EndsWith("}"));
  }
}

TEST_F(Score, IsContentWhereAllPass) {
  Case("right", "Abs", 1);
  const CommandResult text = Run("");
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.output, EndsWith("\n1 passed, 0 failed\n"));
}

}  // namespace onward::score_test
