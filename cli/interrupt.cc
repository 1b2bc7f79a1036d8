// SPDX-License-Identifier: Apache-2.0
// Ctrl-C asks a run to stop; pressed again, it ends the process.
#include <csignal>

#include "cli/commands.h"

namespace onward {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void OnSignal(int signal) {
  if (interrupted.exchange(true)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

const std::atomic<bool>& Interrupted() { return interrupted; }

void WatchInterrupts() {
  std::signal(SIGINT, OnSignal);
  std::signal(SIGTERM, OnSignal);
}

}  // namespace onward
