// SPDX-License-Identifier: Apache-2.0
// RunProgram (args.h): from words to an exit code, and what all commands have in
// common on the way.
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>

#include "absl/strings/str_cat.h"
#include "cli/args.h"
#include "cli/paths.h"
#include "core/base/status.h"

namespace onward {
namespace {

// Memory that a person asked for and the machine does not have.
absl::StatusOr<int> Guarded(const Command& command, const Args& args) {
  try {
    return command.run(args);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        "there is not enough memory; a smaller --batch, a smaller --head or --memory-limit may "
        "help");
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("internal error: ", e.what()));
  }
}

absl::StatusOr<int> RunCommand(const Command& command, const Args& args) {
  if (command.check) ONWARD_RETURN_IF_ERROR(command.check(args));
  ONWARD_RETURN_IF_ERROR(CheckPaths(command, args));
  absl::StatusOr<int> code = Guarded(command, args);
  if (!code.ok()) return NamingFile(command, args, code.status());
  return code;
}

int Dispatch(const CommandLine& program, absl::Span<const std::string> words, std::ostream& out,
             std::ostream& err) {
  const bool asks_help = !words.empty() && words[0] == "help";
  if (asks_help) words.remove_prefix(1);
  if (words.empty()) {
    (asks_help ? out : err) << HelpText(program);
    return asks_help ? 0 : 2;
  }
  if (words[0] == "--help" || words[0] == "-h") {
    out << HelpText(program);
    return 0;
  }
  if (words[0] == "--version") {
    out << program.name << " " << program.version << "\n";
    return 0;
  }
  std::vector<std::string> names;
  for (const Command& command : program.commands) {
    names.push_back(command.name);
    if (command.name != words[0]) continue;
    const absl::StatusOr<Args> args = ParseArgs(command, words.subspan(1));
    if (asks_help || (args.ok() && args->help())) {
      out << HelpText(program.name, command);
      return 0;
    }
    const std::string where = absl::StrCat(program.name, " ", command.name);
    if (!args.ok()) {
      err << where << ": " << std::string(args.status().message()) << "\n"
          << "'" << where << " --help' shows the usage and an example.\n";
      return 2;
    }
    const absl::StatusOr<int> code = RunCommand(command, *args);
    if (code.ok()) return *code;
    err << where << ": " << std::string(code.status().message()) << "\n";
    return 2;
  }
  err << program.name << ": " << std::string(UnknownWord("command", words[0], names).message())
      << "\n";
  return 2;
}

// Why `out` did not take all that was printed; 0 if it did, -1 if nobody knows.
int WhyNotPrinted(std::ostream& out) {
  errno = 0;
  out.flush();
  if (out.good()) return 0;
  // It failed some time ago, and why is forgotten: one more line tells. What is printed is
  // in pieces already.
  if (errno == 0) {
    out.clear();
    out << std::endl;
  }
  return errno == 0 ? -1 : errno;
}

}  // namespace

int RunProgram(const CommandLine& program, absl::Span<const std::string> words, std::ostream& out,
               std::ostream& err) {
  const int code = Dispatch(program, words, out, err);
  const int error = WhyNotPrinted(out);
  // A reader that left early, as head does, has what it wanted.
  if (error == 0 || error == EPIPE) return code;
  err << program.name << ": cannot write to standard output"
      << (error > 0 ? absl::StrCat(": ", std::strerror(error)) : "") << "\n";
  return 2;
}

}  // namespace onward
