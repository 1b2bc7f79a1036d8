// SPDX-License-Identifier: Apache-2.0
// Completion for shells (manual.h). Descriptions come from the declarations; everything that a
// shell would take for more than text is quoted.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cli/manual.h"

namespace onward {
namespace {

std::string SingleQuoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string CommandNames(const CommandLine& program) {
  return absl::StrJoin(program.commands, " ", [](std::string* out, const Command& command) {
    absl::StrAppend(out, command.name);
  });
}

std::string FlagNamesOf(const Command& command) {
  std::string names = "--help";
  for (const Flag& flag : command.flags) {
    absl::StrAppend(&names, " --", flag.name);
    if (flag.short_name != 0) absl::StrAppend(&names, " -", std::string(1, flag.short_name));
  }
  return names;
}

// Inside the brackets of a zsh specification.
std::string ZshText(absl::string_view text) {
  return absl::StrReplaceAll(
      text, {{"\\", "\\\\"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}, {"'", "'\\''"}});
}

std::string ZshValue(const Flag& flag) {
  if (flag.placeholder.empty() && flag.choices.empty()) return "";
  if (!flag.choices.empty()) {
    return absl::StrCat(flag.implied.empty() ? ":" : "::", flag.name, ":(",
                        absl::StrJoin(flag.choices, " "), ")");
  }
  const bool file = flag.names != FlagNames::kNoFile;
  return absl::StrCat(":", ZshText(flag.placeholder), ":", file ? "_files" : "");
}

std::string ZshFlag(const Flag& flag) {
  const std::string often = flag.repeated ? "*" : "";
  const std::string help = absl::StrCat("[", ZshText(FirstSentence(flag.help)), "]");
  std::string out =
      absl::StrCat("        '", often, "--", flag.name, help, ZshValue(flag), "' \\\n");
  if (flag.short_name != 0) {
    absl::StrAppend(&out, "        '", often, "-", std::string(1, flag.short_name), help,
                    ZshValue(flag), "' \\\n");
  }
  return out;
}

}  // namespace

std::string BashCompletion(const CommandLine& program) {
  std::string flags, values;
  for (const Command& command : program.commands) {
    absl::StrAppend(&flags, "    ", command.name, ") words=\"", FlagNamesOf(command), "\" ;;\n");
    for (const Flag& flag : command.flags) {
      if (flag.choices.empty()) continue;
      absl::StrAppend(&values, "    \"", command.name, " --", flag.name, "\") words=\"",
                      absl::StrJoin(flag.choices, " "), "\" ;;\n");
    }
  }
  return absl::StrCat("# bash completion for ", program.name, "\n_", program.name, R"(() {
  local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} words=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W ")",
                      CommandNames(program), R"(" -- "$cur"))
    return
  fi
  case "$command $before" in
)",
                      values, R"(  esac
  if [ -n "$words" ]; then
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
    return
  fi
  if [ "${cur:0:1}" != - ]; then
    COMPREPLY=($(compgen -f -- "$cur"))
    return
  fi
  case "$command" in
)",
                      flags, R"(  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o filenames -F _)",
                      program.name, " ", program.name, "\n");
}

std::string ZshCompletion(const CommandLine& program) {
  std::string commands, cases;
  for (const Command& command : program.commands) {
    absl::StrAppend(&commands, "    '", command.name, ":", ZshText(command.summary), "'\n");
    absl::StrAppend(&cases, "    ", command.name, ")\n      _arguments \\\n");
    for (const Flag& flag : command.flags) absl::StrAppend(&cases, ZshFlag(flag));
    absl::StrAppend(&cases, "        '--help[this text]' '*:file:_files' ;;\n");
  }
  return absl::StrCat("#compdef ", program.name, "\n_", program.name,
                      "() {\n  local -a commands\n  commands=(\n", commands,
                      "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    "
                      "return\n  fi\n  shift words\n  (( CURRENT-- ))\n  case $words[1] in\n",
                      cases, "  esac\n}\n_", program.name, " \"$@\"\n");
}

std::string FishCompletion(const CommandLine& program) {
  const std::string start = absl::StrCat("complete -c ", program.name);
  std::string out = absl::StrCat("# fish completion for ", program.name, "\n");
  for (const Command& command : program.commands) {
    absl::StrAppend(&out, start, " -f -n __fish_use_subcommand -a ", command.name, " -d ",
                    SingleQuoted(command.summary), "\n");
    for (const Flag& flag : command.flags) {
      absl::StrAppend(&out, start, " -n '__fish_seen_subcommand_from ", command.name, "' -l ",
                      flag.name);
      if (flag.short_name != 0) absl::StrAppend(&out, " -s ", std::string(1, flag.short_name));
      if (!flag.choices.empty()) {
        absl::StrAppend(&out, " -x -a ", SingleQuoted(absl::StrJoin(flag.choices, " ")));
      } else if (!flag.placeholder.empty()) {
        absl::StrAppend(&out, flag.names == FlagNames::kNoFile ? " -x" : " -r");
      }
      absl::StrAppend(&out, " -d ", SingleQuoted(FirstSentence(flag.help)), "\n");
    }
  }
  return out;
}

}  // namespace onward
