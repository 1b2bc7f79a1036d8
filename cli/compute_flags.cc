// SPDX-License-Identifier: Apache-2.0
#include "cli/compute_flags.h"

#include <atomic>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/runtime/plan/plan.h"
#include "environment/devices.h"

namespace onward {
namespace {

constexpr double kMostThreads = 1024;

absl::StatusOr<size_t> ReadSize(const std::string& text) {
  const std::string units = "KMGT";
  size_t digits = text.size();
  int64_t factor = 1;
  if (digits > 0) {
    const size_t unit = units.find(absl::ascii_toupper(static_cast<unsigned char>(text.back())));
    if (unit != std::string::npos) {
      factor = int64_t{1} << (10 * (unit + 1));
      --digits;
    }
  }
  double number = 0;
  if (!absl::SimpleAtod(text.substr(0, digits), &number) || !(number > 0) ||
      number * static_cast<double>(factor) > 1e15) {
    return absl::InvalidArgumentError(
        absl::StrCat("--memory-limit ", text, " is no size; write it like 500M or 2G"));
  }
  return static_cast<size_t>(number * static_cast<double>(factor));
}

Flag PluginFlag() {
  return Flag::Value("plugin", "LIB.so", "a shared library that adds operators")
      .Names(FlagNames::kLibrary)
      .Repeated();
}

// Nothing is slow in silence: the first plan with nodes that the device cannot run says so.
void TellFallbacks(const Plan& plan) {
  static std::atomic<bool> told = false;
  const std::vector<const PlanStep*> steps = plan.Fallbacks();
  if (steps.empty() || told.exchange(true)) return;
  std::map<std::string, int> counts;
  for (const PlanStep* step : steps) ++counts[step->node.op_type];
  std::cerr << "device: " << steps.size() << " of " << plan.compute.size() << " steps run on "
            << plan.device->name() << ", " << plan.accelerators[0]->name() << " has no kernel: "
            << absl::StrJoin(counts, ", ",
                             [](std::string* out, const auto& entry) {
                               absl::StrAppend(out, entry.first, " ", entry.second);
                             })
            << "\n";
}

std::vector<Flag> DeviceFlags() {
  return {
      Flag::Value("device", "D",
                  "auto, cpu, cuda or cuda:N; what a device lacks runs on the CPU (default cpu)"),
      Flag::Switch("require-device", "an error where a node cannot run on the device"),
      Flag::Switch("allow-nondeterministic", "sums on the GPU in whatever order is fastest"),
      Flag::Switch("allow-tf32", "products of floats on the GPU with 10 bits of mantissa"),
  };
}

absl::Status ReadDevice(const Args& args, EnvironmentOptions* options) {
  const std::string device = args.Has("device") ? args.String("device") : "cpu";
  options->require_accelerator = args.Has("require-device");
  if (device == "cpu") {
    for (const char* flag : {"require-device", "allow-nondeterministic", "allow-tf32"}) {
      if (!args.Has(flag)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("--", flag, " needs a --device other than cpu"));
    }
    return absl::OkStatus();
  }
  DeviceOptions wanted;
  wanted.deterministic = !args.Has("allow-nondeterministic");
  wanted.allow_tf32 = args.Has("allow-tf32");
  ONWARD_ASSIGN_OR_RETURN(MakeAccelerator make,
                          AcceleratorNamed(device == "auto" ? "cuda" : device, wanted));
  options->accelerators.push_back(std::move(make));
  options->planned = TellFallbacks;
  return absl::OkStatus();
}

absl::StatusOr<EnvironmentOptions> ReadOptions(const Args& args) {
  EnvironmentOptions options;
  if (args.Has("memory-limit")) {
    ONWARD_ASSIGN_OR_RETURN(options.memory_limit, ReadSize(args.String("memory-limit")));
  }
  options.exact_convolutions = args.Has("exact-conv");
  options.plugins = args.All("plugin");
  ONWARD_RETURN_IF_ERROR(ReadDevice(args, &options));
  return options;
}

// With --device auto, a machine without the device is no error.
absl::StatusOr<std::unique_ptr<const Environment>> MakeEnvironment(const Args& args,
                                                                   EnvironmentOptions options) {
  auto environment = Environment::Make(options);
  if (environment.ok() || !args.Has("device") || args.String("device") != "auto" ||
      options.require_accelerator) {
    return environment;
  }
  std::cerr << "device: cpu (" << environment.status().message() << ")\n";
  options.accelerators.clear();
  return Environment::Make(options);
}

}  // namespace

Command InEnvironment(Command command, RunIn run) {
  command.flags.push_back(PluginFlag());
  command.run = [run = std::move(run)](const Args& args) -> absl::StatusOr<int> {
    ONWARD_ASSIGN_OR_RETURN(const std::unique_ptr<const Environment> environment,
                            Environment::Make({.plugins = args.All("plugin")}));
    return run(args, *environment);
  };
  return command;
}

Command Planning(Command command, RunIn run) {
  for (Flag& flag : DeviceFlags()) command.flags.push_back(std::move(flag));
  command.flags.push_back(PluginFlag());
  command.check = [check = std::move(command.check)](const Args& args) -> absl::Status {
    EnvironmentOptions ignored;
    ONWARD_RETURN_IF_ERROR(ReadDevice(args, &ignored));
    return check ? check(args) : absl::OkStatus();
  };
  command.run = [run = std::move(run)](const Args& args) -> absl::StatusOr<int> {
    EnvironmentOptions options;
    options.plugins = args.All("plugin");
    ONWARD_RETURN_IF_ERROR(ReadDevice(args, &options));
    ONWARD_ASSIGN_OR_RETURN(const std::unique_ptr<const Environment> environment,
                            MakeEnvironment(args, std::move(options)));
    return run(args, *environment);
  };
  return command;
}

Command Computing(Command command, RunIn run) {
  command.flags.push_back(Flag::Count("threads", "N", "threads to use", 1, kMostThreads));
  command.flags.push_back(
      Flag::Switch("exact-conv", "no convolution algorithm that rounds more (Winograd)"));
  command.flags.push_back(
      Flag::Value("memory-limit", "SIZE",
                  "bytes a run may use, as in 500M or 2G; values are computed again to fit"));
  for (Flag& flag : DeviceFlags()) command.flags.push_back(std::move(flag));
  command.flags.push_back(PluginFlag());
  command.check = [check = std::move(command.check)](const Args& args) -> absl::Status {
    ONWARD_RETURN_IF_ERROR(ReadOptions(args).status());
    return check ? check(args) : absl::OkStatus();
  };
  command.run = [run = std::move(run)](const Args& args) -> absl::StatusOr<int> {
    if (args.Has("threads")) SetThreads(args.SmallInt("threads"));
    ONWARD_ASSIGN_OR_RETURN(EnvironmentOptions options, ReadOptions(args));
    ONWARD_ASSIGN_OR_RETURN(const std::unique_ptr<const Environment> environment,
                            MakeEnvironment(args, std::move(options)));
    return run(args, *environment);
  };
  return command;
}

Flag EntryFlag(std::string help) {
  constexpr double kMostEntries = 1000000;
  return Flag::Count("entry", "K", std::move(help), 0, kMostEntries);
}

void WarnOfTraining(const Model& model) {
  if (!model.training_damaged()) return;
  std::cerr << "warning: training_info of '" << model.path()
            << "' is damaged and left out; it cannot be trained\n";
}

}  // namespace onward
