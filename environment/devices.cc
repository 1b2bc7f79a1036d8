// SPDX-License-Identifier: Apache-2.0
#include "environment/devices.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status.h"

namespace onward {
namespace {

// Where a library of Onward's own may be; the last one leaves it to the system.
std::vector<std::string> Places(const std::string& file) {
  std::vector<std::string> places;
  std::error_code none;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", none).parent_path();
  if (!none) {
    places.push_back((program / file).string());
    places.push_back((program / ".." / "lib" / file).string());
  }
  if (const char* folders = std::getenv("ONWARD_DEVICES")) {
    for (const absl::string_view folder : absl::StrSplit(folders, ':', absl::SkipEmpty())) {
      places.push_back((std::filesystem::path(std::string(folder)) / file).string());
    }
  }
  places.push_back(file);
  return places;
}

// Devices live as long as the process, so the library is never closed.
absl::StatusOr<const DevicePlugin*> OpenPlugin(const std::string& file) {
  std::string reasons;
  for (const std::string& place : Places(file)) {
    const bool is_path = place.find('/') != std::string::npos;
    if (is_path && !std::filesystem::exists(place)) continue;
    void* const library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      absl::StrAppend(&reasons, reasons.empty() ? "" : "; ", dlerror());
      continue;
    }
    const auto plugin =
        reinterpret_cast<DevicePluginFunction>(dlsym(library, "onward_device_plugin"));
    if (plugin == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(place, " is no device of Onward"));
    }
    const DevicePlugin* const found = plugin();
    if (found->abi != kDeviceAbi || std::string(found->version) != ONWARD_VERSION) {
      return absl::InvalidArgumentError(absl::StrCat(place, " belongs to Onward ", found->version,
                                                     ", this is ", ONWARD_VERSION,
                                                     "; install both from one build"));
    }
    return found;
  }
  return absl::NotFoundError(absl::StrCat(file, " cannot be opened: ", reasons));
}

}  // namespace

absl::StatusOr<MakeAccelerator> AcceleratorNamed(const std::string& name, DeviceOptions options) {
  const std::vector<std::string> parts = absl::StrSplit(name, ':');
  const bool known = parts[0] == "cuda" || parts[0] == "cuda-emu";
  if (!known || parts.size() > 2 ||
      (parts.size() == 2 && (!absl::SimpleAtoi(parts[1], &options.index) || options.index < 0))) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' is no device; valid: auto, cpu, cuda, cuda:N"));
  }
  const std::string file = parts[0] == "cuda" ? "libonward_cuda.so" : "libonward_cuda_emu.so";
  return MakeAccelerator([=](const Device&) -> absl::StatusOr<std::unique_ptr<const Device>> {
    ONWARD_ASSIGN_OR_RETURN(const DevicePlugin* const plugin, OpenPlugin(file));
    return plugin->make(options);
  });
}

}  // namespace onward
