// SPDX-License-Identifier: Apache-2.0
#include "cli/compute_flags.h"

#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"

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

absl::StatusOr<EnvironmentOptions> ReadOptions(const Args& args) {
  EnvironmentOptions options;
  if (args.Has("memory-limit")) {
    ONWARD_ASSIGN_OR_RETURN(options.memory_limit, ReadSize(args.String("memory-limit")));
  }
  options.exact_convolutions = args.Has("exact-conv");
  options.plugins = args.All("plugin");
  return options;
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

Command Computing(Command command, RunIn run) {
  command.flags.push_back(Flag::Count("threads", "N", "threads to use", 1, kMostThreads));
  command.flags.push_back(
      Flag::Switch("exact-conv", "no convolution algorithm that rounds more (Winograd)"));
  command.flags.push_back(
      Flag::Value("memory-limit", "SIZE",
                  "bytes a run may use, as in 500M or 2G; values are computed again to fit"));
  command.flags.push_back(PluginFlag());
  command.check = [check = std::move(command.check)](const Args& args) -> absl::Status {
    ONWARD_RETURN_IF_ERROR(ReadOptions(args).status());
    return check ? check(args) : absl::OkStatus();
  };
  command.run = [run = std::move(run)](const Args& args) -> absl::StatusOr<int> {
    ONWARD_ASSIGN_OR_RETURN(const EnvironmentOptions options, ReadOptions(args));
    if (args.Has("threads")) SetThreads(args.SmallInt("threads"));
    ONWARD_ASSIGN_OR_RETURN(const std::unique_ptr<const Environment> environment,
                            Environment::Make(options));
    return run(args, *environment);
  };
  return command;
}

void WarnOfTraining(const Model& model) {
  if (!model.training_damaged()) return;
  std::cerr << "warning: training_info of '" << model.path()
            << "' is damaged and left out; it cannot be trained\n";
}

}  // namespace onward
