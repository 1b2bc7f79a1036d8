// SPDX-License-Identifier: Apache-2.0
// The file of a plugin: opened, and asked for what it defines.
#ifndef ONWARD_ENVIRONMENT_PLUGIN_LIBRARY_H_
#define ONWARD_ENVIRONMENT_PLUGIN_LIBRARY_H_

#include <string>

#include "absl/status/statusor.h"
#include "onward/plugin.h"

namespace onward {

// The library stays loaded: what it registers is code of it. Errors do not name the file.
absl::StatusOr<const api::Plugin*> OpenPluginLibrary(const std::string& path);

}  // namespace onward

#endif  // ONWARD_ENVIRONMENT_PLUGIN_LIBRARY_H_
