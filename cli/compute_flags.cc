// SPDX-License-Identifier: Apache-2.0
#include "cli/compute_flags.h"

#include <utility>

#include "core/base/parallel.h"
#include "core/device/cpu.h"

namespace onward {

Command Computing(Command command) {
  command.flags.push_back(Flag::Count("threads", "N", "threads to use", 1));
  command.flags.push_back(
      Flag::Switch("exact-conv", "no convolution algorithm that rounds more (Winograd)"));
  command.run = [run = std::move(command.run)](const Args& args) {
    if (args.Has("threads")) SetThreads(static_cast<int>(args.Int("threads")));
    UseExactConvolutions(args.Has("exact-conv"));
    return run(args);
  };
  return command;
}

}  // namespace onward
