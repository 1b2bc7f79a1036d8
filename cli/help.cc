// SPDX-License-Identifier: Apache-2.0
// The --help texts of args.h.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/args.h"

namespace onward {
namespace {

constexpr size_t kWidth = 100;
constexpr size_t kLongestLeft = 30;

struct Row {
  std::string left, right;
};

std::string Wrapped(const std::string& text, size_t indent) {
  std::string out;
  size_t column = indent;
  for (const std::string& word : std::vector<std::string>(absl::StrSplit(text, ' '))) {
    if (column > indent && column + 1 + word.size() > kWidth) {
      absl::StrAppend(&out, "\n", std::string(indent, ' '));
      column = indent;
    }
    if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

std::string Table(const std::vector<Row>& rows) {
  size_t width = 0;
  for (const Row& row : rows) {
    if (row.left.size() <= kLongestLeft) width = std::max(width, row.left.size());
  }
  const size_t indent = width + 4;
  std::string out;
  for (const Row& row : rows) {
    absl::StrAppend(&out, "  ", row.left);
    if (row.left.size() > width) {
      absl::StrAppend(&out, "\n", std::string(indent, ' '));
    } else {
      out.append(indent - 2 - row.left.size(), ' ');
    }
    const std::vector<std::string> lines = absl::StrSplit(row.right, '\n', absl::SkipEmpty());
    if (!lines.empty()) out += Wrapped(lines[0], indent);
    out += '\n';
    // A list keeps its lines, and has the whole width for them.
    for (size_t i = 1; i < lines.size(); ++i) absl::StrAppend(&out, "    ", lines[i], "\n");
  }
  return out;
}

}  // namespace

std::string SpelledFlag(const Flag& flag) {
  std::string text = flag.short_name == 0
                         ? absl::StrCat("--", flag.name)
                         : absl::StrCat("-", std::string(1, flag.short_name), ", --", flag.name);
  if (flag.placeholder.empty()) return text;
  const bool optional = !flag.implied.empty();
  absl::StrAppend(&text, optional ? " [" : " ", flag.placeholder, optional ? "]" : "");
  return text;
}

std::string ExplainedFlag(const Flag& flag) {
  std::vector<std::string> notes;
  if (flag.required) {
    notes.push_back(flag.unless.empty()
                        ? "required"
                        : absl::StrCat("required without --", absl::StrJoin(flag.unless, ", --")));
  }
  if (flag.repeated) notes.push_back("may be repeated");
  if (!flag.implied.empty()) notes.push_back(absl::StrCat("alone: ", flag.implied));
  if (!flag.otherwise.empty()) notes.push_back(absl::StrCat("default ", flag.otherwise));
  if (notes.empty()) return flag.help;
  const size_t line = std::min(flag.help.find('\n'), flag.help.size());
  return absl::StrCat(flag.help.substr(0, line), " (", absl::StrJoin(notes, ", "), ")",
                      flag.help.substr(line));
}

std::string UsageLine(absl::string_view program, const Command& command) {
  std::string usage = absl::StrCat(program, " ", command.name);
  for (const Argument& argument : command.arguments) {
    const std::string name = argument.name + (argument.repeated ? "..." : "");
    absl::StrAppend(&usage, " ", argument.optional ? absl::StrCat("[", name, "]") : name);
  }
  bool others = false;
  for (const Flag& flag : command.flags) {
    others |= !flag.required;
    if (!flag.required) continue;
    const std::string name = flag.short_name == 0
                                 ? absl::StrCat("--", flag.name)
                                 : absl::StrCat("-", std::string(1, flag.short_name));
    absl::StrAppend(&usage, " ", name, " ", flag.placeholder);
  }
  if (others) absl::StrAppend(&usage, " [flags]");
  return usage;
}

std::string HelpText(absl::string_view program, const Command& command) {
  std::string out = absl::StrCat(program, " ", command.name, ": ", command.summary,
                                 "\n\nusage: ", UsageLine(program, command), "\n");
  std::vector<Row> rows;
  for (const Argument& argument : command.arguments) rows.push_back({argument.name, argument.help});
  if (!rows.empty()) absl::StrAppend(&out, "\n", Table(rows));
  rows.clear();
  for (const Flag& flag : command.flags) rows.push_back({SpelledFlag(flag), ExplainedFlag(flag)});
  rows.push_back({"--help", "this text"});
  absl::StrAppend(&out, "\nflags:\n", Table(rows));
  if (command.example.empty()) return out;
  absl::StrAppend(&out, "\nexample:\n");
  for (absl::string_view line : absl::StrSplit(command.example, '\n')) {
    absl::StrAppend(&out, "  ", line, "\n");
  }
  return out;
}

std::string HelpText(const CommandLine& program) {
  std::vector<Row> rows;
  for (const Command& command : program.commands) rows.push_back({command.name, command.summary});
  return absl::StrCat(program.name, ": ", program.summary, "\n\nusage: ", program.name,
                      " COMMAND [arguments and flags]\n\ncommands:\n", Table(rows), "\n'",
                      program.name, " COMMAND --help' shows a command's flags and an example.\n");
}

}  // namespace onward
