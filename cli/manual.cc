// SPDX-License-Identifier: Apache-2.0
#include "cli/manual.h"

#include <filesystem>
#include <iostream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/base/atomic_file.h"
#include "core/base/status.h"

namespace onward {
namespace {

// Text as roff prints it: backslashes, hyphens that are typed, and no line that begins like a
// request.
std::string Roff(absl::string_view text) {
  std::string out = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
  out = absl::StrReplaceAll(out, {{"\n.", "\n\\&."}, {"\n'", "\n\\&'"}});
  if (!out.empty() && (out[0] == '.' || out[0] == '\'')) out.insert(0, "\\&");
  return out;
}

std::string Header(const CommandLine& program, absl::string_view page, absl::string_view summary) {
  return absl::StrCat(".TH ", absl::AsciiStrToUpper(page), " 1 \"\" \"", program.name, " ",
                      program.version, "\"\n.SH NAME\n", Roff(page), " \\- ", Roff(summary), "\n");
}

// Lines stay lines.
std::string Described(absl::string_view term, const std::string& text) {
  std::string out = absl::StrCat(".TP\n.B ", Roff(term), "\n");
  bool first = true;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    absl::StrAppend(&out, first ? "" : ".br\n", Roff(line), "\n");
    first = false;
  }
  return out;
}

std::string PageName(const CommandLine& program, const Command& command) {
  return absl::StrCat(program.name, "-", command.name);
}

absl::StatusOr<const Command*> Find(const CommandLine& program, const std::string& name) {
  std::vector<std::string> names;
  for (const Command& command : program.commands) {
    if (command.name == name) return &command;
    names.push_back(command.name);
  }
  return UnknownWord("command", name, names);
}

}  // namespace

std::string FirstSentence(absl::string_view text) {
  const size_t end = text.find_first_of(";\n");
  return std::string(text.substr(0, end));
}

std::string ManualPage(const CommandLine& program) {
  std::string out =
      absl::StrCat(Header(program, program.name, program.summary), ".SH SYNOPSIS\n.B ",
                   Roff(program.name), "\nCOMMAND [arguments and flags]\n.SH COMMANDS\n");
  for (const Command& command : program.commands) {
    absl::StrAppend(&out, Described(command.name, command.summary));
  }
  absl::StrAppend(&out,
                  ".SH EXIT STATUS\n0: done. 1: the answer is no (a check found something, a "
                  "comparison differs). 2: wrong usage or bad input.\n.SH SEE ALSO\n");
  for (size_t i = 0; i < program.commands.size(); ++i) {
    absl::StrAppend(&out, ".BR ", Roff(PageName(program, program.commands[i])), " (1)",
                    i + 1 < program.commands.size() ? "," : "", "\n");
  }
  return out;
}

std::string ManualPage(const CommandLine& program, const Command& command) {
  std::string out = absl::StrCat(Header(program, PageName(program, command), command.summary),
                                 ".SH SYNOPSIS\n", Roff(UsageLine(program.name, command)), "\n");
  if (!command.arguments.empty()) absl::StrAppend(&out, ".SH ARGUMENTS\n");
  for (const Argument& argument : command.arguments) {
    absl::StrAppend(&out, Described(argument.name, argument.help));
  }
  absl::StrAppend(&out, ".SH OPTIONS\n");
  for (const Flag& flag : command.flags) {
    absl::StrAppend(&out, Described(SpelledFlag(flag), ExplainedFlag(flag)));
  }
  absl::StrAppend(&out, Described("--help", "this text"));
  if (!command.example.empty()) {
    absl::StrAppend(&out, ".SH EXAMPLE\n.nf\n", Roff(command.example), "\n.fi\n");
  }
  return absl::StrCat(out, ".SH SEE ALSO\n.BR ", Roff(program.name), " (1)\n");
}

absl::Status WriteManual(const CommandLine& program, const std::string& folder) {
  std::vector<std::pair<std::string, std::string>> files = {
      {absl::StrCat("man/man1/", program.name, ".1"), ManualPage(program)},
      {absl::StrCat("bash-completion/completions/", program.name), BashCompletion(program)},
      {absl::StrCat("zsh/site-functions/_", program.name), ZshCompletion(program)},
      {absl::StrCat("fish/vendor_completions.d/", program.name, ".fish"), FishCompletion(program)}};
  for (const Command& command : program.commands) {
    files.emplace_back(absl::StrCat("man/man1/", PageName(program, command), ".1"),
                       ManualPage(program, command));
  }
  for (const auto& [name, text] : files) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) {
      return absl::UnavailableError(absl::StrCat(
          "cannot make the folder '", path.parent_path().string(), "': ", error.message()));
    }
    ONWARD_RETURN_IF_ERROR(WriteFileAtomically(path.string(), text));
  }
  return absl::OkStatus();
}

Command ManCommand(const CommandLine& program) {
  return {.name = "man",
          .summary = "manual pages: this program's, or a command's",
          .arguments = {{"COMMAND", "whose page; none: the program's", true}},
          .flags = {Flag::Value("into", "DIR",
                                "write all pages and completions below DIR, laid out like "
                                "/usr/share, instead of printing one")},
          .example = "onward man train | man -l -",
          .run = [&program](const Args& args) -> absl::StatusOr<int> {
            if (args.Has("into")) {
              ONWARD_RETURN_IF_ERROR(WriteManual(program, args.String("into")));
              return 0;
            }
            if (args.Argument("COMMAND").empty()) {
              std::cout << ManualPage(program);
              return 0;
            }
            ONWARD_ASSIGN_OR_RETURN(const Command* command,
                                    Find(program, args.Argument("COMMAND")));
            std::cout << ManualPage(program, *command);
            return 0;
          }};
}

Command CompletionCommand(const CommandLine& program) {
  return {.name = "completion",
          .summary = "a script that completes commands, flags and files in a shell",
          .arguments = {{"SHELL", "bash, zsh or fish"}},
          .flags = {},
          .example = "onward completion bash > ~/.local/share/bash-completion/completions/onward",
          .run = [&program](const Args& args) -> absl::StatusOr<int> {
            const std::string shell = args.Argument("SHELL");
            if (shell == "bash") {
              std::cout << BashCompletion(program);
            } else if (shell == "zsh") {
              std::cout << ZshCompletion(program);
            } else if (shell == "fish") {
              std::cout << FishCompletion(program);
            } else {
              return UnknownWord("shell", shell, {"bash", "zsh", "fish"});
            }
            return 0;
          }};
}

}  // namespace onward
