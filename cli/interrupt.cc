// SPDX-License-Identifier: Apache-2.0
// Ctrl-C asks a run to stop; pressed again, it ends the process.
#include <csignal>

#include "cli/commands.h"

namespace onward {
namespace {

std::atomic<bool> interrupted{false}, asked_to_end{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void OnSignal(int signal) {
  interrupted = true;
  // A terminal that closes may say so twice, and none of it is impatience.
  if (signal != SIGHUP && asked_to_end.exchange(true)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

const std::atomic<bool>& Interrupted() { return interrupted; }

void WatchInterrupts() {
  std::signal(SIGINT, OnSignal);
  std::signal(SIGTERM, OnSignal);
  // nohup has it ignored, and means it.
  if (std::signal(SIGHUP, OnSignal) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
}

void OutliveReaders() { std::signal(SIGPIPE, SIG_IGN); }

}  // namespace onward
