// SPDX-License-Identifier: Apache-2.0
#include "environment/plugin_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace onward {
namespace {

constexpr std::string_view kVersion = ONWARD_VERSION;
static_assert(std::string_view(api::kPluginAbi).starts_with("onward-plugin ") &&
                  std::string_view(api::kPluginAbi).substr(14) ==
                      kVersion.substr(0, kVersion.rfind('.')),
              "onward/plugin.h names the version of the interface");

constexpr size_t kLongestAbi = 100;
constexpr char kNoLibrary[] = "is no shared library for this machine";

// The loader maps what the headers of a file promise, and a file that is shorter ends the
// process when it is touched. So they are looked at first.
absl::Status CheckLibrary(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return absl::NotFoundError(std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return absl::InvalidArgumentError(kNoLibrary);
  const auto size = static_cast<uint64_t>(info.st_size);
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::PermissionDeniedError(std::strerror(errno));
  Elf64_Ehdr header;
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  if (!file || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_DYN ||
      header.e_phentsize != sizeof(Elf64_Phdr)) {
    return absl::InvalidArgumentError(kNoLibrary);
  }
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    file.seekg(static_cast<std::streamoff>(header.e_phoff + i * sizeof segment));
    file.read(reinterpret_cast<char*>(&segment), sizeof segment);
    if (!file || segment.p_offset > size || segment.p_filesz > size - segment.p_offset) {
      return absl::DataLossError("the file is cut short");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<const api::Plugin*> OpenPluginLibrary(const std::string& path) {
  ONWARD_RETURN_IF_ERROR(CheckLibrary(path));
  // A bare name would be looked for in the system's folders.
  std::error_code error;
  const std::string file = std::filesystem::absolute(path, error).string();
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return absl::InvalidArgumentError(
        absl::StrCat("cannot be loaded: ", why == nullptr ? "no reason given" : why));
  }
  using Entry = const api::Plugin* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "onward_plugin"));
  if (entry == nullptr) {
    return absl::InvalidArgumentError(
        "does not define onward_plugin; fix: see onward/plugin.h for what a plugin is");
  }
  const api::Plugin* plugin = entry();
  if (plugin == nullptr || plugin->abi == nullptr) {
    return absl::InvalidArgumentError("its onward_plugin does not say which interface it is for");
  }
  const std::string_view abi(plugin->abi, strnlen(plugin->abi, kLongestAbi));
  if (abi != api::kPluginAbi) {
    return absl::FailedPreconditionError(
        absl::StrCat("was built for '", std::string(abi), "', this is '", api::kPluginAbi,
                     "'; fix: build it again with the headers of Onward ", ONWARD_VERSION));
  }
  if (plugin->Register == nullptr) {
    return absl::InvalidArgumentError("its Register is null");
  }
  return plugin;
}

}  // namespace onward
