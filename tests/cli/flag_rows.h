// SPDX-License-Identifier: Apache-2.0
// What shows that a flag does something: the same command with it and without it.
#ifndef ONWARD_TESTS_CLI_FLAG_ROWS_H_
#define ONWARD_TESTS_CLI_FLAG_ROWS_H_

#include <string>
#include <vector>

namespace onward {

// '@' in texts is the test's folder, '%squared' a plugin with the operator SquaredRelu. What is
// seen: the exit code (EXIT), standard output (OUT) or error (ERR), the model that is written
// without what it says of its flags (MODEL), the names of files (FOLDER), the sizes of the teams of
// threads (TEAMS), or a file's text; files that are absent are "".
struct FlagRow {
  std::string command = "";  // "train", "eval"
  std::string flag = "";     // as it is declared
  std::string base = "";     // the other arguments
  std::string given = "";    // the flag, with its value
  std::string seen = "";
  std::string with = "";    // what is in it with the flag, and not without
  std::string before = "";  // lines of commands that make what the other two need
  std::string until = "";   // a file: the command is killed once it is there
  // The command takes the flag, so that a line of another one can be used again, and it changes
  // nothing of what is seen.
  bool same = false;
};

using FlagRows = std::vector<FlagRow>;

FlagRows TrainFlagRows();    // train, eval
FlagRows FileFlagRows();     // what reads and writes models, reports and tables
FlagRows RunFlagRows();      // what computes: run, score, step, predict, doctor, compare, bench
FlagRows ComputeFlagRows();  // how it is computed: the flags that all of these share

// Words that several rows have.
inline constexpr char kRowData[] = "--data csv:@d.csv?label=label";
inline constexpr char kRowMake[] = "make-trainable @two.onnx -o @t.onnx";
inline constexpr char kRowMakeConv[] = "make-trainable @conv.onnx -o @c.onnx";

struct FlagValue {
  std::string flag, given;
};
// What makes a model trainable, for @two.onnx.
std::vector<FlagValue> AuthorFlagValues();

}  // namespace onward

#endif  // ONWARD_TESTS_CLI_FLAG_ROWS_H_
