// SPDX-License-Identifier: Apache-2.0
// Event files, read by TensorBoard itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/onnx_io/model.h"
#include "tests/support/classified.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward::tensorboard_test {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kReader[] = R"(
import sys
from tensorboard.backend.event_processing import event_accumulator as e
events = e.EventAccumulator(sys.argv[1], size_guidance={e.SCALARS: 0, e.TENSORS: 0})
events.Reload()
for tag in sorted(events.Tags()['scalars']):
    for s in events.Scalars(tag): print(tag, s.step, '%.9g' % s.value)
for tag in sorted(events.Tags()['tensors']):
    for t in events.Tensors(tag): print(tag, t.step, t.tensor_proto.string_val[0].decode())
)";

std::string Python() {
  const char* named = std::getenv("ONWARD_TENSORBOARD_PYTHON");
  return named != nullptr ? named : "python3";
}

TEST(TensorBoard, ReadsWhatARunWrites) {
  if (std::system((Python() + " -c 'import tensorboard' 2>/dev/null").c_str()) != 0) {
    GTEST_SKIP() << "no Python with tensorboard: name one in ONWARD_TENSORBOARD_PYTHON; that "
                    "TensorBoard reads event files is NOT tested here";
  }
  const Scratch scratch;
  ASSERT_TRUE(WriteModel(TextModel(LinearClassifier(3, 3)), scratch.Path("m.onnx")).ok());
  scratch.Write("d.csv", ClassifiedCsv({"ape", "bee", "cow"}, 48));
  scratch.Write("read.py", kReader);
  const std::string data = "'csv:" + scratch.Path("d.csv") + "?label=label'";
  const std::string train = "train " + scratch.Path("m.onnx") + " --data " + data + " --eval " +
                            data + " --quiet --tensorboard " + scratch.Path("tb") + " --log " +
                            scratch.Path("log") + " -o " + scratch.Path("out.onnx");
  ASSERT_EQ(RunOnward(BuiltProgram(), train + " --batch 8 --epochs 2").exit_code, 0);
  const CommandResult read =
      RunOnward(Python(), scratch.Path("read.py") + " " + scratch.Path("tb"));
  ASSERT_EQ(read.exit_code, 0) << read.errors;
  for (const char* text :
       {"training/loss 1 1.09861", "training/loss 12 ", "training/accuracy 12 ",
        "training/learning_rate 1 ", "evaluation/loss 0 1.09861", "evaluation/accuracy 12 ",
        "weights/w 6 ", "gradients/w 12 ", "command 0 ", "--epochs 2"}) {
    EXPECT_THAT(read.output, HasSubstr(text));
  }
  EXPECT_THAT(read.errors, Not(HasSubstr("rror")));
  // A resumed run adds to it.
  ASSERT_EQ(RunOnward(BuiltProgram(), train + " --resume --epochs 3").exit_code, 0);
  const CommandResult more =
      RunOnward(Python(), scratch.Path("read.py") + " " + scratch.Path("tb"));
  EXPECT_THAT(more.output, HasSubstr("training/loss 18 "));
  EXPECT_THAT(more.output, HasSubstr("training/loss 1 1.09861"));
}

}  // namespace onward::tensorboard_test
