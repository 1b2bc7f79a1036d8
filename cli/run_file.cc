// SPDX-License-Identifier: Apache-2.0
#include "cli/run_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/toml.h"
#include "core/base/status.h"

namespace onward {
namespace {

constexpr std::uintmax_t kMostRunFileBytes = 1 << 20;

// A table that stands for the value of a flag: HEAD, then its options.
struct TableForm {
  const char *table, *head, *before_options, *between, *in_list;
};
constexpr TableForm kTables[] = {{"optimizer", "name", ":", ",", "/"},
                                 {"schedule", "name", ":", ",", "/"},
                                 {"loss", "name", ":", ",", "/"},
                                 {"data", "spec", "?", "&", ","},
                                 {"eval", "spec", "?", "&", ","}};

absl::StatusOr<std::string> ReadAll(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return absl::NotFoundError(absl::StrCat("'", path, "' is no file"));
  }
  if (std::filesystem::file_size(path, error) > kMostRunFileBytes || error) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is too large for a run file"));
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  if (!(bytes << file.rdbuf())) {
    return absl::UnavailableError(absl::StrCat("'", path, "' cannot be read, or is empty"));
  }
  return bytes.str();
}

absl::StatusOr<std::vector<std::string>> Texts(const TomlValue& value) {
  if (value.kind != TomlValue::Kind::kList) return std::vector<std::string>{value.text};
  std::vector<std::string> texts;
  for (const TomlValue& item : value.items) {
    if (item.kind == TomlValue::Kind::kList) {
      return absl::InvalidArgumentError("a list in a list has no meaning here");
    }
    texts.push_back(item.text);
  }
  return texts;
}

class RunFileReader {
 public:
  explicit RunFileReader(const std::string& path) : path_(path) {}

  absl::StatusOr<std::vector<FileFlag>> Read() {
    ONWARD_ASSIGN_OR_RETURN(const std::string text, ReadAll(path_));
    auto entries = ParseToml(text);
    if (!entries.ok()) return Annotate(entries.status(), absl::StrCat("'", path_, "'"));
    for (size_t i = 0; i < entries->size();) {
      const TomlEntry& entry = (*entries)[i];
      if (entry.table.empty()) {
        ONWARD_RETURN_IF_ERROR(Annotate(Key(entry), Place(entry)));
        ++i;
        continue;
      }
      std::vector<TomlEntry> table;
      while (i < entries->size() && (*entries)[i].table == entry.table) {
        table.push_back((*entries)[i++]);
      }
      ONWARD_RETURN_IF_ERROR(Annotate(Table(table), Place(table[0])));
    }
    return std::move(flags_);
  }

 private:
  std::string Place(const TomlEntry& entry) const {
    return absl::StrCat("'", path_, "', line ", entry.line);
  }

  absl::Status Key(const TomlEntry& entry) {
    ONWARD_ASSIGN_OR_RETURN(std::vector<std::string> values, Texts(entry.value));
    return Add({entry.key, std::move(values), Place(entry)});
  }

  absl::Status Table(const std::vector<TomlEntry>& table) {
    const std::string& name = table[0].table;
    const auto* form = std::find_if(std::begin(kTables), std::end(kTables),
                                    [&](const TableForm& f) { return name == f.table; });
    if (form == std::end(kTables)) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no table [", name,
                       "]; there are [optimizer], [schedule], [loss], [data] and [eval]"));
    }
    std::string head;
    std::vector<std::string> options;
    for (const TomlEntry& entry : table) {
      ONWARD_ASSIGN_OR_RETURN(const std::vector<std::string> values, Texts(entry.value));
      const std::string value = absl::StrJoin(values, form->in_list);
      if (entry.key == form->head) {
        head = value;
      } else {
        options.push_back(absl::StrCat(entry.key, "=", value));
      }
    }
    if (head.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("table [", name, "] needs ", form->head, " = \"...\""));
    }
    const bool has_options = absl::StrContains(head, form->before_options);
    if (!options.empty()) {
      absl::StrAppend(&head, has_options ? form->between : form->before_options,
                      absl::StrJoin(options, form->between));
    }
    return Add({name, {head}, Place(table[0])});
  }

  absl::Status Add(FileFlag flag) {
    for (const FileFlag& other : flags_) {
      if (other.name == flag.name) {
        return absl::InvalidArgumentError(absl::StrCat("'", flag.name, "' is given twice"));
      }
    }
    flags_.push_back(std::move(flag));
    return absl::OkStatus();
  }

  const std::string& path_;
  std::vector<FileFlag> flags_;
};

}  // namespace

absl::StatusOr<std::vector<FileFlag>> ReadRunFile(const std::string& path) {
  return RunFileReader(path).Read();
}

std::string RunFileText(const Args& args, const std::vector<std::string>& left_out) {
  std::string text = absl::StrCat("model = ", TomlText(args.Argument("MODEL")), "\n");
  for (const auto& [name, values] : args.Given()) {
    if (std::find(left_out.begin(), left_out.end(), name) != left_out.end()) continue;
    const std::string list = absl::StrJoin(
        values, ", ", [](std::string* out, const std::string& v) { out->append(TomlText(v)); });
    absl::StrAppend(&text, name, " = ", values.size() == 1 ? list : absl::StrCat("[", list, "]"),
                    "\n");
  }
  return text;
}

}  // namespace onward
