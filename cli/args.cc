// SPDX-License-Identifier: Apache-2.0
#include "cli/args.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"

namespace onward {
namespace {

std::string Dashed(const std::string& name) { return absl::StrCat("--", name); }

bool IsSwitch(const Flag& flag) { return flag.placeholder.empty(); }

// A word that cannot be meant as the value before which it stands: -5 and "-" can.
bool LooksLikeFlag(const std::string& word) {
  return word.size() >= 2 && word[0] == '-' && !absl::ascii_isdigit(word[1]) && word[1] != '.';
}

absl::Status CheckValue(const Flag& flag, const std::string& value) {
  if (flag.number.has_value()) {
    const absl::StatusOr<double> number = ParseNumber(*flag.number, value);
    if (!number.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          Dashed(flag.name), " has to be ", flag.number->Expects(), ", got '", value, "'"));
    }
  }
  if (flag.choices.empty() || std::count(flag.choices.begin(), flag.choices.end(), value) > 0) {
    return absl::OkStatus();
  }
  return UnknownWord(absl::StrCat("value of ", Dashed(flag.name)), value, flag.choices);
}

}  // namespace

class ArgsParser {
 public:
  ArgsParser(const Command& command, absl::Span<const std::string> words)
      : command_(command), words_(words) {}

  absl::StatusOr<Args> Parse() {
    for (const Flag& flag : command_.flags) args_.defaults_[flag.name] = flag.otherwise;
    args_.words_.assign(words_.begin(), words_.end());
    bool flags_end = false;
    std::vector<std::string> plain;
    while (next_ < words_.size()) {
      const std::string word = words_[next_++];
      if (!flags_end && word == "--") {
        flags_end = true;
      } else if (!flags_end && (word == "--help" || word == "-h")) {
        args_.help_ = true;
        return std::move(args_);
      } else if (!flags_end && word.size() > 2 && absl::StartsWith(word, "--")) {
        ONWARD_RETURN_IF_ERROR(TakeLong(word));
      } else if (!flags_end && LooksLikeFlag(word)) {
        ONWARD_RETURN_IF_ERROR(TakeShort(word));
      } else {
        plain.push_back(word);
      }
    }
    if (command_.flag_file && plain.size() == 1 && absl::EndsWith(plain[0], ".toml")) {
      ONWARD_RETURN_IF_ERROR(TakeFile(plain[0], &plain));
    }
    ONWARD_RETURN_IF_ERROR(TakeArguments(plain));
    for (const Clash& clash : command_.clashes) {
      if (args_.Has(clash.one) && args_.Has(clash.other)) {
        return absl::InvalidArgumentError(clash.why);
      }
    }
    for (const Flag& flag : command_.flags) {
      const bool spared = std::any_of(flag.unless.begin(), flag.unless.end(),
                                      [&](const std::string& other) { return args_.Has(other); });
      if (flag.required && !spared && !args_.Has(flag.name)) return Missing(flag);
    }
    return std::move(args_);
  }

 private:
  absl::Status TakeLong(const std::string& word) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    for (const Flag& flag : command_.flags) {
      if (flag.name != name) continue;
      std::optional<std::string> attached;
      if (equals != std::string::npos) attached = word.substr(equals + 1);
      return Take(flag, word.substr(0, equals), attached);
    }
    std::vector<std::string> names = {"help"};
    for (const Flag& flag : command_.flags) names.push_back(flag.name);
    return UnknownFlag(word.substr(0, equals), Nearest(name, names));
  }

  absl::Status TakeShort(const std::string& word) {
    for (const Flag& flag : command_.flags) {
      if (flag.short_name != word[1]) continue;
      std::optional<std::string> attached;
      if (word.size() > 2) attached = word.substr(word[2] == '=' ? 3 : 2);
      return Take(flag, word.substr(0, 2), attached);
    }
    // -epochs was meant as --epochs.
    std::vector<std::string> names = {"help"};
    for (const Flag& flag : command_.flags) names.push_back(flag.name);
    const std::string name = word.substr(1, word.find('=') - 1);
    return UnknownFlag(word, name.size() < 2 ? "" : Nearest(name, names));
  }

  absl::Status Take(const Flag& flag, const std::string& spelled,
                    std::optional<std::string> attached) {
    std::vector<std::string>& values = args_.flags_[flag.name];
    if (!values.empty() && !flag.repeated) {
      return absl::InvalidArgumentError(absl::StrCat(spelled, " is given twice"));
    }
    if (IsSwitch(flag)) {
      if (attached.has_value()) {
        return absl::InvalidArgumentError(
            absl::StrCat(spelled, " takes no value, got '", *attached, "'"));
      }
      values.push_back("true");
      return absl::OkStatus();
    }
    if (!attached.has_value() && !flag.implied.empty() && !ChoiceFollows(flag)) {
      attached = flag.implied;
    }
    if (!attached.has_value()) {
      if (next_ == words_.size() || LooksLikeFlag(words_[next_])) {
        return absl::InvalidArgumentError(
            absl::StrCat(spelled, " needs a value: ", spelled, " ", flag.placeholder));
      }
      attached = words_[next_++];
    }
    ONWARD_RETURN_IF_ERROR(CheckValue(flag, *attached));
    values.push_back(*std::move(attached));
    return absl::OkStatus();
  }

  bool ChoiceFollows(const Flag& flag) const {
    return next_ < words_.size() &&
           std::count(flag.choices.begin(), flag.choices.end(), words_[next_]) > 0;
  }

  // Flags and the argument that a file gives; `plain` is the argument then.
  absl::Status TakeFile(const std::string path, std::vector<std::string>* plain) {
    ONWARD_ASSIGN_OR_RETURN(const std::vector<FileFlag> given, command_.flag_file(path));
    const std::set<std::string> line = NamesGiven();
    const std::string argument =
        command_.arguments.empty() ? "" : absl::AsciiStrToLower(command_.arguments[0].name);
    plain->clear();
    for (const FileFlag& from : given) {
      if (from.name == argument) {
        *plain = from.values;
      } else if (!line.contains(from.name) && !ClashesWith(line, from.name)) {
        ONWARD_RETURN_IF_ERROR(Annotate(TakeFileFlag(from), from.place));
      }
    }
    if (!plain->empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' does not say what to work on: ", argument, " = \"FILE\""));
  }

  std::set<std::string> NamesGiven() const {
    std::set<std::string> names;
    for (const auto& [name, values] : args_.flags_) names.insert(name);
    return names;
  }

  bool ClashesWith(const std::set<std::string>& line, const std::string& name) const {
    return std::any_of(command_.clashes.begin(), command_.clashes.end(), [&](const Clash& c) {
      return (c.one == name && line.contains(c.other)) || (c.other == name && line.contains(c.one));
    });
  }

  absl::Status TakeFileFlag(const FileFlag& from) {
    std::vector<std::string> names;
    for (const Argument& argument : command_.arguments) {
      names.push_back(absl::AsciiStrToLower(argument.name));
    }
    for (const Flag& flag : command_.flags) {
      names.push_back(flag.name);
      if (flag.name != from.name) continue;
      const std::string word = from.values.size() == 1 ? from.values[0] : "";
      if (!flag.implied.empty() && (word == "true" || word == "false")) {
        return word == "true" ? Take(flag, flag.name, flag.implied) : absl::OkStatus();
      }
      if (IsSwitch(flag)) {
        if (word != "true" && word != "false") {
          return absl::InvalidArgumentError(absl::StrCat(flag.name, " is true or false"));
        }
        return word == "true" ? Take(flag, flag.name, std::nullopt) : absl::OkStatus();
      }
      for (const std::string& value : from.values) {
        ONWARD_RETURN_IF_ERROR(Take(flag, flag.name, value));
      }
      return absl::OkStatus();
    }
    return UnknownWord("key", from.name, names);
  }

  absl::Status TakeArguments(const std::vector<std::string>& plain) {
    size_t taken = 0;
    for (const Argument& argument : command_.arguments) {
      std::vector<std::string>& values = args_.arguments_[argument.name];
      const size_t end = argument.repeated ? plain.size() : std::min(taken + 1, plain.size());
      values.assign(plain.begin() + taken, plain.begin() + end);
      taken = end;
      if (values.empty() && !argument.optional) {
        return absl::InvalidArgumentError(
            absl::StrCat("missing ", argument.name, ": ", argument.help));
      }
    }
    if (taken == plain.size()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("unexpected argument '", plain[taken], "'"));
  }

  absl::Status UnknownFlag(const std::string& word, const std::string& nearest) const {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown flag ", word,
                     nearest.empty() ? "" : absl::StrCat("; did you mean ", Dashed(nearest), "?")));
  }

  static absl::Status Missing(const Flag& flag) {
    const std::string spelled = flag.short_name != 0
                                    ? absl::StrCat("-", std::string(1, flag.short_name))
                                    : Dashed(flag.name);
    return absl::InvalidArgumentError(
        absl::StrCat("missing ", spelled, " ", flag.placeholder, ": ", flag.help));
  }

  const Command& command_;
  absl::Span<const std::string> words_;
  size_t next_ = 0;
  Args args_;
};

Flag Flag::Switch(std::string name, std::string help) {
  Flag flag;
  flag.name = std::move(name);
  flag.help = std::move(help);
  return flag;
}

Flag Flag::Value(std::string name, std::string placeholder, std::string help) {
  Flag flag = Switch(std::move(name), std::move(help));
  flag.placeholder = std::move(placeholder);
  return flag;
}

Flag Flag::Choice(std::string name, std::vector<std::string> choices, std::string help) {
  Flag flag = Value(std::move(name), absl::StrJoin(choices, "|"), std::move(help));
  flag.choices = std::move(choices);
  return flag;
}

Flag Flag::Count(std::string name, std::string placeholder, std::string help, double low,
                 double high) {
  Flag flag = Value(std::move(name), std::move(placeholder), std::move(help));
  flag.number = NumberOption::Count("", 0, low);
  flag.number->high = high;
  return flag;
}

Flag Flag::Number(std::string name, std::string placeholder, std::string help, double low,
                  double high) {
  Flag flag = Value(std::move(name), std::move(placeholder), std::move(help));
  flag.number = NumberOption{.name = "", .low = low, .high = high};
  return flag;
}

bool Args::Has(absl::string_view flag) const {
  const std::string name(flag);
  CheckInvariant(defaults_.contains(name), "a command asks for flags it declared");
  return flags_.contains(name);
}

std::string Args::String(absl::string_view flag) const {
  return Has(flag) ? flags_.at(std::string(flag)).back() : defaults_.at(std::string(flag));
}

std::vector<std::string> Args::All(absl::string_view flag) const {
  return Has(flag) ? flags_.at(std::string(flag)) : std::vector<std::string>{};
}

int64_t Args::Int(absl::string_view flag) const { return static_cast<int64_t>(Double(flag)); }

int Args::SmallInt(absl::string_view flag) const {
  const int64_t value = Int(flag);
  CheckInvariant(value == static_cast<int>(value), "a flag read as an int declares such a range");
  return static_cast<int>(value);
}

double Args::Double(absl::string_view flag) const {
  double value = 0;
  return absl::SimpleAtod(String(flag), &value) ? value : 0;
}

std::string Args::Argument(absl::string_view name) const {
  const std::vector<std::string> all = Arguments(name);
  return all.empty() ? "" : all.front();
}

std::vector<std::string> Args::Arguments(absl::string_view name) const {
  auto it = arguments_.find(std::string(name));
  CheckInvariant(it != arguments_.end(), "a command asks for arguments it declared");
  return it->second;
}

absl::StatusOr<Args> ParseArgs(const Command& command, absl::Span<const std::string> words) {
  return ArgsParser(command, words).Parse();
}

}  // namespace onward
