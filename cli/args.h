// SPDX-License-Identifier: Apache-2.0
// Command lines by declaration. A Command says which flags and arguments it takes; from
// that come parsing, range checks, --help, and the messages for wrong usage:
//
//   const Command kTrain = {
//       .name = "train", .summary = "fine-tunes a model", .arguments = {{"MODEL", "..."}},
//       .flags = {Flag::Value("output", "FILE", "where to write").Short('o').Required(),
//                 Flag::Count("epochs", "N", "passes over the data", 1).Default("1"),
//                 Flag::Switch("quiet", "no progress")},
//       .example = "onward train m.onnx --data digits -o out.onnx", .run = RunTrain};
//
// Flags are written --name VALUE, --name=VALUE, -o VALUE or -oVALUE, anywhere on the
// line; "--" ends them. What a user can get wrong is a Status; asking Args for something
// that was not declared is a mistake of ours and ends the process.
#ifndef ONWARD_CLI_ARGS_H_
#define ONWARD_CLI_ARGS_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/spec.h"

namespace onward {

// What the value of a flag names. Checks that all commands share go by it (paths.h).
enum class FlagNames {
  kNoFile,
  kModel,    // a file that is read
  kData,     // a data spec
  kTensor,   // NAME=FILE, or a literal
  kLibrary,  // a shared library that is loaded
  kResult,   // a file that is written whole
  kLog,      // a file that grows
};

struct Flag {
  std::string name;         // without dashes
  std::string placeholder;  // "FILE"; empty: a switch that takes no value
  std::string help;
  char short_name = 0;
  bool required = false;
  std::vector<std::string> unless;  // it is not required where one of these is given
  bool repeated = false;
  std::string otherwise;               // default, also shown in --help
  std::optional<NumberOption> number;  // the value is a number in this range
  std::vector<std::string> choices;    // the value is one of these
  std::string implied;                 // of the choices, where the flag stands alone
  FlagNames names = FlagNames::kNoFile;

  static Flag Switch(std::string name, std::string help);
  static Flag Value(std::string name, std::string placeholder, std::string help);
  static Flag Choice(std::string name, std::vector<std::string> choices, std::string help);
  // Whole numbers; up to 2^53 - 1 where nothing else is said.
  static Flag Count(std::string name, std::string placeholder, std::string help, double low,
                    double high = std::numeric_limits<double>::infinity());
  static Flag Number(std::string name, std::string placeholder, std::string help, double low,
                     double high);

  Flag Short(char c) && {
    short_name = c;
    return std::move(*this);
  }
  Flag Names(FlagNames what) && {
    names = what;
    return std::move(*this);
  }
  Flag Required() && {
    required = true;
    return std::move(*this);
  }
  Flag RequiredUnless(std::vector<std::string> others) && {
    required = true;
    unless = std::move(others);
    return std::move(*this);
  }
  Flag Repeated() && {
    repeated = true;
    return std::move(*this);
  }
  Flag Implied(std::string value) && {
    implied = std::move(value);
    return std::move(*this);
  }
  Flag Default(std::string value) && {
    otherwise = std::move(value);
    return std::move(*this);
  }
};

// Two flags that cannot both be meant, and what to say of them.
struct Clash {
  std::string one, other, why;
};

// A flag that a file gives.
struct FileFlag {
  std::string name;  // or an argument, in small letters
  std::vector<std::string> values;
  std::string place;  // for messages: "'run.toml', line 7"
};

struct Argument {
  std::string name;  // "MODEL"
  std::string help;
  bool optional = false;
  bool repeated = false;  // only the last one; at least one unless optional
};

class Args {
 public:
  // Whether --help was given; nothing else is checked then.
  bool help() const { return help_; }
  // Whether a flag was given.
  bool Has(absl::string_view flag) const;
  // Its value (the last one), its default, or "".
  std::string String(absl::string_view flag) const;
  std::vector<std::string> All(absl::string_view flag) const;
  // Numbers were checked when the line was parsed; 0 where neither given nor defaulted.
  int64_t Int(absl::string_view flag) const;
  // Of a flag whose declared range an int holds.
  int SmallInt(absl::string_view flag) const;
  double Double(absl::string_view flag) const;
  // Every flag that was given, with its values; a switch has the value "true".
  const std::map<std::string, std::vector<std::string>, std::less<>>& Given() const {
    return flags_;
  }
  // An argument, "" where an optional one is missing; every one of a repeated argument.
  std::string Argument(absl::string_view name) const;
  std::vector<std::string> Arguments(absl::string_view name) const;
  // All that stood on the line after the command, as it was typed.
  const std::vector<std::string>& words() const { return words_; }

 private:
  friend class ArgsParser;
  bool help_ = false;
  std::vector<std::string> words_;
  std::map<std::string, std::string, std::less<>> defaults_;  // every declared flag
  std::map<std::string, std::vector<std::string>, std::less<>> flags_;
  std::map<std::string, std::vector<std::string>, std::less<>> arguments_;
};

struct Command {
  std::string name;
  std::string summary;
  std::vector<Argument> arguments;
  std::vector<Flag> flags;
  std::string example;  // one or more command lines
  std::vector<Clash> clashes = {};
  // Reads a file of flags that stands in the place of all arguments (NAME.toml). What the line
  // itself gives comes before what the file says. May be empty.
  std::function<absl::StatusOr<std::vector<FileFlag>>(const std::string& path)> flag_file = nullptr;
  // What the flags get wrong beyond what each says of itself; asked before any file is
  // read. May be empty.
  std::function<absl::Status(const Args&)> check = nullptr;
  // The exit code (0 done, 1 the answer is no); an error means exit code 2.
  std::function<absl::StatusOr<int>(const Args&)> run = nullptr;
};

absl::StatusOr<Args> ParseArgs(const Command& command, absl::Span<const std::string> words);

// The text of `PROGRAM COMMAND --help`, its lines at most 100 columns wide.
std::string HelpText(absl::string_view program, const Command& command);

// Its parts: "-o, --output FILE"; what it says with what is required, repeated, default;
// "onward train MODEL --data SPEC -o FILE [flags]", arguments and required flags.
std::string SpelledFlag(const Flag& flag);
std::string ExplainedFlag(const Flag& flag);
std::string UsageLine(absl::string_view program, const Command& command);

struct CommandLine {
  std::string name;
  std::string summary;
  std::string version;
  std::vector<Command> commands;
};

// The text of `PROGRAM --help`.
std::string HelpText(const CommandLine& program);

// Runs the command that the words after the program's name ask for, and returns the exit
// code. Help goes to `out`, messages to `err`. Commands print to `out` themselves; that all
// of it has arrived is seen to here, as is that an error names the file it is about.
int RunProgram(const CommandLine& program, absl::Span<const std::string> words, std::ostream& out,
               std::ostream& err);

}  // namespace onward

#endif  // ONWARD_CLI_ARGS_H_
