// SPDX-License-Identifier: Apache-2.0
// Plugins on their way into an Environment.
#ifndef ONWARD_ENVIRONMENT_PLUGIN_REGISTRY_H_
#define ONWARD_ENVIRONMENT_PLUGIN_REGISTRY_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "autograd/rule.h"
#include "core/device/kernel.h"
#include "core/graph/function_library.h"
#include "core/graph/operator_set.h"
#include "onward/plugin.h"

namespace onward {

class PluginRegistry {
 public:
  // Adds to both, which have to outlive it.
  PluginRegistry(FunctionLibrary* functions, RuleTable* rules)
      : functions_(*functions), rules_(*rules) {}

  // All that the plugin registers, or an error that names it.
  absl::Status Load(const std::string& file);
  // Once all are loaded: bodies call what is known, and not themselves.
  absl::Status CheckBodies(const OperatorSet& operators) const;
  // Adds their kernels to a device.
  std::function<void(KernelTable&)> kernels() const;

 private:
  struct NamedKernel {
    FunctionKey key;
    KernelTable::Entry entry;
  };
  class Adding;

  absl::Status Add(const std::string& plugin, const api::OperatorDef& def);
  absl::Status CheckBody(const FunctionKey& key, std::vector<FunctionKey>* path,
                         const OperatorSet& operators) const;

  FunctionLibrary& functions_;
  RuleTable& rules_;
  std::vector<NamedKernel> kernels_;
  std::map<FunctionKey, std::string> plugin_of_;
};

}  // namespace onward

#endif  // ONWARD_ENVIRONMENT_PLUGIN_REGISTRY_H_
