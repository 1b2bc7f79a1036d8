// SPDX-License-Identifier: Apache-2.0
// A run in a file: every flag of the command is a key, the model is `model`.
//
//   model = "model.onnx"
//   data = "csv:rows.csv?label=kind"
//   output = "trained.onnx"
//   epochs = 5
//   loss = ["cross_entropy@digit", "0.1*l1@mask"]   # a flag that may be repeated
//   quiet = true
//
//   [optimizer]                                     # also schedule and loss
//   name = "adamw"
//   lr = 1e-3
//
//   [eval]                                          # also data
//   spec = "csv:more.csv"
//   label = "kind"
#ifndef ONWARD_CLI_RUN_FILE_H_
#define ONWARD_CLI_RUN_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/args.h"

namespace onward {

// Command::flag_file.
absl::StatusOr<std::vector<FileFlag>> ReadRunFile(const std::string& path);

// The file that has these arguments, those in `left_out` apart.
std::string RunFileText(const Args& args, const std::vector<std::string>& left_out);

}  // namespace onward

#endif  // ONWARD_CLI_RUN_FILE_H_
