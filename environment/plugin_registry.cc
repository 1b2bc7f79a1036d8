// SPDX-License-Identifier: Apache-2.0
#include "environment/plugin_registry.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/onnx_io/function_text.h"
#include "core/onnx_io/operators.h"
#include "environment/plugin_call.h"
#include "environment/plugin_library.h"

namespace onward {
namespace {

// The newest version of any domain.
constexpr int kAnyVersion = 1000000;
// A body may end up in a file, and files are written at this opset or above.
constexpr int kNewestBodyOpset = 18;

std::string NameOf(const FunctionKey& key) {
  return key.domain.empty() ? key.name : absl::StrCat(key.domain, ".", key.name);
}

bool IsStandard(const FunctionKey& key) {
  Node node;
  node.op_type = key.name;
  node.domain = key.domain;
  return MakeOnnxOperators(nullptr)->SinceVersion(node, {{key.domain, kAnyVersion}}) != 0;
}

absl::Status CheckParts(const FunctionKey& key, const api::OperatorDef& def) {
  if (key.name.empty()) return absl::InvalidArgumentError("has no name");
  if (key.domain == kOnwardDomain || key.domain == kTrainingDomain) {
    return absl::InvalidArgumentError("its domain is taken; choose one of your own");
  }
  const bool standard = IsStandard(key);
  if (key.domain.empty() && !standard) {
    return absl::InvalidArgumentError(
        "the standard has no such operator; give it a domain of your own");
  }
  if (standard && (def.types || !def.body.empty())) {
    return absl::InvalidArgumentError(
        "the standard says what its types and body are; add a kernel or a gradient only");
  }
  if (!def.kernel && def.body.empty() && !(standard && def.gradient)) {
    return absl::InvalidArgumentError("has neither kernel nor body");
  }
  if (!standard && !def.types && def.body.empty()) {
    return absl::InvalidArgumentError("has a kernel, but neither type rule nor body");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Function>> ReadBody(const FunctionKey& key,
                                                         const std::string& text) {
  ONWARD_ASSIGN_OR_RETURN(NamedFunction read, ParseFunctionText(text));
  if (read.key != key) {
    return absl::InvalidArgumentError(
        absl::StrCat("its body is a function ", NameOf(read.key), " instead"));
  }
  if (read.function.body.opset() > kNewestBodyOpset) {
    return absl::InvalidArgumentError(absl::StrCat("its body is written in opset ",
                                                   read.function.body.opset(), "; at most ",
                                                   kNewestBodyOpset, " can be written to files"));
  }
  return std::make_shared<const Function>(std::move(read.function));
}

}  // namespace

// What Register is handed. It keeps the first error, also where the plugin does not.
class PluginRegistry::Adding final : public api::Registry {
 public:
  Adding(PluginRegistry* to, std::string plugin) : to_(*to), plugin_(std::move(plugin)) {}

  api::Status Add(const api::OperatorDef& def) override {
    absl::Status added = to_.Add(plugin_, def);
    if (added.ok()) return {};
    if (status_.ok()) status_ = added;
    return api::Status(static_cast<api::StatusCode>(added.code()), std::string(added.message()));
  }
  const absl::Status& status() const { return status_; }

 private:
  PluginRegistry& to_;
  const std::string plugin_;
  absl::Status status_;
};

absl::Status PluginRegistry::Load(const std::string& file) {
  const std::string plugin = absl::StrCat("plugin '", file, "'");
  return CallPlugin(plugin, [&]() -> absl::Status {
    ONWARD_ASSIGN_OR_RETURN(const api::Plugin* opened, OpenPluginLibrary(file));
    Adding adding(this, plugin);
    const api::Status registered = opened->Register(adding);
    ONWARD_RETURN_IF_ERROR(adding.status());
    return FromPlugin(registered);
  });
}

absl::Status PluginRegistry::Add(const std::string& plugin, const api::OperatorDef& def) {
  const FunctionKey key{def.domain, def.name, ""};
  const std::string context = absl::StrCat("operator ", NameOf(key));
  ONWARD_RETURN_IF_ERROR(Annotate(CheckParts(key, def), context));
  const auto [known, added] = plugin_of_.emplace(key, plugin);
  if (!added) {
    return absl::AlreadyExistsError(
        absl::StrCat(context, " is there already, from ", known->second));
  }
  if (def.gradient && rules_.Find(key.name, key.domain) != nullptr) {
    return absl::AlreadyExistsError(absl::StrCat(context, " has a gradient already"));
  }
  if (def.types || !def.body.empty()) {
    FunctionDef function;
    function.since = def.since;
    if (def.types) function.types = TypesOfPlugin(plugin, def.types);
    if (!def.body.empty()) {
      auto body = ReadBody(key, def.body);
      if (!body.ok()) return Annotate(body.status(), context);
      function.function = *std::move(body);
    }
    functions_.Add(key.name, std::move(function), key.domain);
  }
  if (def.kernel) {
    kernels_.push_back(
        {key, {"plugin", def.since, KernelOfPlugin(plugin, def.since, def.kernel), ""}});
  }
  if (def.gradient) rules_.Add(key.name, GradientOfPlugin(plugin, def.gradient), key.domain);
  return absl::OkStatus();
}

absl::Status PluginRegistry::CheckBodies(const OperatorSet& operators) const {
  for (const auto& [key, plugin] : plugin_of_) {
    std::vector<FunctionKey> path;
    ONWARD_RETURN_IF_ERROR(Annotate(CheckBody(key, &path, operators), plugin));
  }
  return absl::OkStatus();
}

absl::Status PluginRegistry::CheckBody(const FunctionKey& key, std::vector<FunctionKey>* path,
                                       const OperatorSet& operators) const {
  const FunctionDef* def = functions_.Find(key.name, key.domain);
  if (def == nullptr || def->function == nullptr) return absl::OkStatus();
  if (std::find(path->begin(), path->end(), key) != path->end()) {
    return absl::InvalidArgumentError(absl::StrCat("the body of ", NameOf(key), " calls itself"));
  }
  path->push_back(key);
  const Graph& body = def->function->body;
  for (const Node& node : body.nodes) {
    if (operators.SinceVersion(node, body.opsets) == 0) {
      return absl::InvalidArgumentError(absl::StrCat("the body of ", NameOf(key), " calls ",
                                                     NameOf({node.domain, node.op_type, ""}),
                                                     ", which nobody defines"));
    }
    ONWARD_RETURN_IF_ERROR(CheckBody({node.domain, node.op_type, ""}, path, operators));
  }
  path->pop_back();
  return absl::OkStatus();
}

std::function<void(KernelTable&)> PluginRegistry::kernels() const {
  return [kernels = kernels_](KernelTable& table) {
    for (const NamedKernel& kernel : kernels) {
      table.Add(kernel.key.name, kernel.entry, kernel.key.domain);
    }
  };
}

}  // namespace onward
