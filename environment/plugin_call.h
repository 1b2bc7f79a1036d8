// SPDX-License-Identifier: Apache-2.0
// What a plugin gave, as what Onward calls. Whatever it returns is checked and whatever it
// throws is caught here; errors name the plugin.
#ifndef ONWARD_ENVIRONMENT_PLUGIN_CALL_H_
#define ONWARD_ENVIRONMENT_PLUGIN_CALL_H_

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "autograd/rule.h"
#include "core/base/status.h"
#include "core/device/kernel.h"
#include "core/graph/function_library.h"
#include "onward/plugin.h"

namespace onward {

absl::Status FromPlugin(const api::Status& status);

// Calls `body`, which calls the plugin and returns a Status. `context` names the plugin.
template <typename Body>
absl::Status CallPlugin(const std::string& context, Body&& body) {
  try {
    return Annotate(body(), context);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat(context, ": out of memory"));
  } catch (const std::exception& e) {
    return absl::InvalidArgumentError(absl::StrCat(context, ": threw an exception: ", e.what()));
  } catch (...) {
    return absl::InvalidArgumentError(absl::StrCat(context, ": threw something unknown"));
  }
}

// `plugin` is "plugin 'FILE'".
FunctionDef::Types TypesOfPlugin(std::string plugin, api::TypeRule rule);
KernelFactory KernelOfPlugin(std::string plugin, int since, api::KernelMaker maker);
Rule GradientOfPlugin(std::string plugin, api::GradientRule rule);

}  // namespace onward

#endif  // ONWARD_ENVIRONMENT_PLUGIN_CALL_H_
