// SPDX-License-Identifier: Apache-2.0
#include "cli/paths.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/tensor_args.h"
#include "core/base/atomic_file.h"
#include "core/base/status.h"
#include "data/data_options.h"
#include "data/readers.h"

namespace onward {
namespace {

namespace fs = std::filesystem;

struct NamedPath {
  std::string flag;  // "-o", "--data", "MODEL"
  std::string path;
  bool is_model = false;
  bool is_data = false;
  bool is_class_folders = false;  // its folders' files are read
  bool is_library = false;
};

// Two paths are one file if they lead to the same place, or to the same file by links of
// any kind.
struct Identity {
  fs::path canonical;
  std::optional<std::pair<dev_t, ino_t>> inode;

  friend bool operator==(const Identity& a, const Identity& b) {
    return a.inode && b.inode ? a.inode == b.inode : a.canonical == b.canonical;
  }
};

Identity IdentityOf(const fs::path& path) {
  Identity identity;
  std::error_code error;
  identity.canonical = fs::weakly_canonical(path, error);
  if (error) identity.canonical = fs::absolute(path, error);
  struct stat info;
  if (stat(path.c_str(), &info) == 0) identity.inode = {info.st_dev, info.st_ino};
  return identity;
}

Identity IdentityOfTarget(const std::string& path) {
  const absl::StatusOr<std::string> target = WriteTarget(path);
  return IdentityOf(target.ok() ? *target : path);
}

// MNIST's files go by several names.
void AddMnistFiles(const NamedPath& folder, std::vector<NamedPath>* paths) {
  for (const char* half : {"train", "t10k"}) {
    for (const char* what :
         {"-images-idx3-ubyte", "-images.idx3-ubyte", "-labels-idx1-ubyte", "-labels.idx1-ubyte"}) {
      for (const char* ending : {"", ".gz"}) {
        NamedPath file = folder;
        absl::StrAppend(&file.path, "/", half, what, ending);
        paths->push_back(std::move(file));
      }
    }
  }
}

void AddDataFiles(const std::string& flag, const std::string& spec, std::vector<NamedPath>* paths) {
  const absl::StatusOr<DataSpec> parsed = SplitDataSpec(spec, Split::kTrain);
  if (!parsed.ok() || parsed->path.empty()) return;
  NamedPath named{flag, parsed->path, /*is_model=*/false, /*is_data=*/true};
  if (parsed->kind == "mnist") {
    AddMnistFiles(named, paths);
  } else if (parsed->kind == "images") {
    std::error_code error;
    named.is_class_folders = fs::is_directory(named.path, error);
    paths->push_back(named);
  } else if (parsed->kind == "tar") {
    for (std::string& shard : ListShards(parsed->path)) {
      named.path = std::move(shard);
      paths->push_back(named);
    }
  } else if (parsed->kind == "csv" || parsed->kind == "jsonl" || parsed->kind == "text" ||
             parsed->kind == "npz") {
    paths->push_back(named);
    if (!parsed->options.text.vocabulary.empty()) {
      named.path = parsed->options.text.vocabulary;
      paths->push_back(named);
    }
  } else {
    for (absl::string_view file : absl::StrSplit(parsed->path, ',')) {
      named.path = std::string(file);
      paths->push_back(named);
    }
  }
}

// Names of inputs may hold '=', so every end of NAME=FILE may be the file.
std::vector<std::string> FilesInTensor(const std::string& argument) {
  std::vector<std::string> files = {argument};
  for (size_t at = argument.find('='); at != std::string::npos; at = argument.find('=', at + 1)) {
    files.push_back(argument.substr(at + 1));
  }
  return files;
}

std::string Spelled(const Flag& flag) {
  return flag.short_name == 'o' ? "-o" : absl::StrCat("--", flag.name);
}

std::vector<NamedPath> InputsOf(const Command& command, const Args& args) {
  std::vector<NamedPath> inputs;
  for (const Argument& argument : command.arguments) {
    for (const std::string& path : args.Arguments(argument.name)) {
      inputs.push_back({argument.name, path, /*is_model=*/true});
    }
  }
  for (const Flag& flag : command.flags) {
    for (const std::string& value : args.All(flag.name)) {
      if (flag.names == FlagNames::kModel) inputs.push_back({Spelled(flag), value, true});
      if (flag.names == FlagNames::kLibrary) {
        inputs.push_back({.flag = Spelled(flag), .path = value, .is_library = true});
      }
      if (flag.names == FlagNames::kData) AddDataFiles(Spelled(flag), value, &inputs);
      if (flag.names != FlagNames::kTensor) continue;
      for (const std::string& file : FilesInTensor(value)) {
        if (IsTensorFile(file)) inputs.push_back({Spelled(flag), file});
      }
    }
  }
  return inputs;
}

bool IsOutput(const Flag& flag) {
  return flag.names == FlagNames::kResult || flag.names == FlagNames::kLog;
}

// A log may also be a pipe or a device: it is opened at once and never replaced.
absl::Status CheckLog(const std::string& path) {
  struct stat info;
  const bool exists = stat(path.c_str(), &info) == 0;
  if (exists && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return absl::OkStatus();
  if (exists && S_ISREG(info.st_mode) && access(path.c_str(), W_OK) == 0) return absl::OkStatus();
  return WriteTarget(path).status();
}

bool Given(const Command& command, const Args& args, absl::string_view name) {
  return std::any_of(command.flags.begin(), command.flags.end(),
                     [&](const Flag& f) { return f.name == name && args.Has(name); });
}

bool LiesInClassFolder(const Identity& file, const std::string& folder) {
  return file.inode.has_value() &&
         IdentityOf(file.canonical.parent_path().parent_path()) == IdentityOf(folder);
}

absl::Status CheckAgainstInputs(const NamedPath& output, const std::vector<NamedPath>& inputs,
                                bool may_replace_model, bool can_overwrite) {
  const Identity written = IdentityOfTarget(output.path);
  for (const NamedPath& input : inputs) {
    const bool same = input.is_class_folders ? LiesInClassFolder(written, input.path)
                                             : IdentityOf(input.path) == written;
    if (!same || (input.is_model && may_replace_model)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        output.flag, " '", output.path, "' would replace what ", input.flag,
        " reads; choose another name",
        input.is_model && can_overwrite ? ", or --overwrite to replace the model itself" : ""));
  }
  return absl::OkStatus();
}

// Whether `path` stands in the text as a word, quoted or not.
bool Mentions(absl::string_view text, absl::string_view path) {
  if (path.empty()) return false;
  const auto part_of_word = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '/';
  };
  for (size_t at = text.find(path); at != absl::string_view::npos; at = text.find(path, at + 1)) {
    const size_t end = at + path.size();
    if ((at == 0 || !part_of_word(text[at - 1])) &&
        (end == text.size() || !part_of_word(text[end])))
      return true;
  }
  return false;
}

}  // namespace

absl::Status CheckPaths(const Command& command, const Args& args) {
  const std::vector<NamedPath> inputs = InputsOf(command, args);
  const bool can_overwrite = std::any_of(command.flags.begin(), command.flags.end(),
                                         [](const Flag& f) { return f.name == "overwrite"; });
  const bool replaces = Given(command, args, "overwrite") || Given(command, args, "resume");
  std::vector<NamedPath> outputs;
  for (const Flag& flag : command.flags) {
    if (!IsOutput(flag) || args.String(flag.name).empty()) continue;
    const NamedPath output{Spelled(flag), args.String(flag.name)};
    ONWARD_RETURN_IF_ERROR(Annotate(
        flag.names == FlagNames::kLog ? CheckLog(output.path) : WriteTarget(output.path).status(),
        output.flag));
    const bool is_model = output.flag == "-o";
    ONWARD_RETURN_IF_ERROR(
        CheckAgainstInputs(output, inputs, is_model && replaces, is_model && can_overwrite));
    for (const NamedPath& other : outputs) {
      if (!(IdentityOfTarget(other.path) == IdentityOfTarget(output.path))) continue;
      return absl::InvalidArgumentError(absl::StrCat(other.flag, " '", other.path, "' and ",
                                                     output.flag, " '", output.path,
                                                     "' are the same file"));
    }
    outputs.push_back(output);
  }
  return absl::OkStatus();
}

absl::Status RefuseToReplace(const std::string& path, const std::vector<std::string>& files) {
  const Identity written = IdentityOfTarget(path);
  for (const std::string& named : files) {
    for (const std::string& file : FilesInTensor(named)) {
      if (!(IdentityOf(file) == written)) continue;
      return absl::InvalidArgumentError(absl::StrCat("writing '", path, "' would replace '", file,
                                                     "', which this command names; choose another "
                                                     "--output-dir"));
    }
  }
  return absl::OkStatus();
}

absl::Status Naming(const std::string& path, const absl::Status& status) {
  if (status.ok() || Mentions(status.message(), path)) return status;
  return Annotate(status, absl::StrCat("'", path, "'"));
}

absl::Status NamingFile(const Command& command, const Args& args, const absl::Status& status) {
  std::vector<NamedPath> known = InputsOf(command, args);
  for (const Flag& flag : command.flags) {
    if (IsOutput(flag)) known.push_back({"", args.String(flag.name)});
  }
  const absl::string_view message = status.message();
  for (const Flag& flag : command.flags) {
    if (flag.names != FlagNames::kData) continue;
    for (const std::string& value : args.All(flag.name)) {
      const auto spec = SplitDataSpec(value, Split::kTrain);
      if (spec.status().message() == message) {
        return Annotate(status, absl::StrCat(Spelled(flag), " '", value, "'"));
      }
      if (spec.ok() && absl::StartsWith(message, spec->path + ": ")) return status;
    }
  }
  for (const NamedPath& file : known) {
    if (file.is_class_folders && absl::StartsWith(message, file.path + "/")) return status;
    // What a plugin does wrong while it works on a model is about the model, too.
    if (file.is_library) {
      if (absl::StartsWith(message, absl::StrCat("plugin '", file.path, "': "))) return status;
      continue;
    }
    const size_t looked_at = file.is_data ? file.path.size() + 2 : message.size();
    if (Mentions(message.substr(0, looked_at), file.path)) return status;
  }
  if (command.arguments.empty()) return status;
  const std::vector<std::string> first = args.Arguments(command.arguments.front().name);
  return first.size() == 1 ? Naming(first.front(), status) : status;
}

}  // namespace onward
