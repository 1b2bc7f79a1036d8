// SPDX-License-Identifier: Apache-2.0
// A command of a row of flags (flag_rows.h), run in a folder with the models and data it names.
#ifndef ONWARD_TESTS_CLI_FLAG_SCENE_H_
#define ONWARD_TESTS_CLI_FLAG_SCENE_H_

#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "tests/cli/flag_rows.h"
#include "tests/support/command.h"
#include "tests/support/scratch.h"

namespace onward {

class FlagScene {
 public:
  // Runs the command of the row, with its flag or without.
  FlagScene(const FlagRow& row, bool with);

  // What the row looks at.
  std::string Seen(const std::string& what) const;
  const std::string& errors() const { return result_.errors; }
  int exit_code() const { return result_.exit_code; }

 private:
  CommandResult Run(const std::string& line, const std::string& until = "") const;
  // Whether one of the lines names it.
  bool Names(const std::string& file) const;
  void WriteModels() const;
  void WriteDeviceModels() const;
  void WriteModelIfNamed(const std::string& name, const std::string& text) const;
  void WriteData() const;
  void WriteArrays() const;
  void WriteArray(const std::string& name, const Tensor& tensor) const;
  void WriteCases() const;
  // A case of `score`: a model, its input and its output.
  void WriteCase(const std::string& name, const std::string& model_bytes, const Tensor& in,
                 const Tensor& out) const;
  // What is expected is what the model gives with these flags.
  void WriteOwnCase(const std::string& name, const std::string& model, const std::string& input,
                    const std::string& flags) const;

  const std::string lines_;  // all that are run
  const bool tells_teams_;
  const Scratch scratch_;
  CommandResult result_;
};

}  // namespace onward

#endif  // ONWARD_TESTS_CLI_FLAG_SCENE_H_
