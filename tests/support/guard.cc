// SPDX-License-Identifier: Apache-2.0
#include "tests/support/guard.h"

#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>

namespace onward {
namespace {

// Present where the library is built with the address sanitizer.
extern "C" void __asan_init() __attribute__((weak));

// What sanitizers multiply: memory by what they keep around and after each block, time by their
// checks.
const unsigned kMemory = Sanitized() ? 4 : 1, kTime = Sanitized() ? 12 : 1;
constexpr size_t kMoreBytes = size_t{2} << 30;
constexpr int kFatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};

char trying[256];

extern "C" void NameAndDie(int signal) {
  constexpr char kLead[] = "\nended while trying: ";
  // Nothing can be done where standard error is closed.
  [[maybe_unused]] ssize_t ignored = write(STDERR_FILENO, kLead, sizeof kLead - 1);
  ignored = write(STDERR_FILENO, trying, std::strlen(trying));
  ignored = write(STDERR_FILENO, "\n", 1);
  raise(signal);  // SA_RESETHAND: this time it ends the process
}

// Overflowing the stack must not keep the handler from running.
void HandleOnOtherStack(int signal) {
  struct sigaction action = {};
  action.sa_handler = NameAndDie;
  action.sa_flags = SA_RESETHAND | SA_ONSTACK | SA_NODEFER;
  sigaction(signal, &action, nullptr);
}

size_t PeakBytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss) * 1024;
}

size_t MappedBytes() {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

bool Sanitized() { return __asan_init != nullptr; }

Guard::Guard(unsigned seconds) : seconds_(kTime * seconds), peak_(PeakBytes()) {
  static char stack[1 << 16];
  stack_t other = {};
  other.ss_sp = stack;
  other.ss_size = sizeof stack;
  sigaltstack(&other, nullptr);
  for (int signal : kFatal) HandleOnOtherStack(signal);
  getrlimit(RLIMIT_AS, &before_);
  rlimit lower = before_;
  lower.rlim_cur = MappedBytes() + kMoreBytes;
  setrlimit(RLIMIT_AS, &lower);
  alarm(seconds_);
}

Guard::~Guard() {
  alarm(0);
  setrlimit(RLIMIT_AS, &before_);
  for (int signal : kFatal) std::signal(signal, SIG_DFL);
}

void Guard::Trying(const std::string& what) {
  alarm(seconds_);
  std::strncpy(trying, what.c_str(), sizeof trying - 1);
}

size_t Guard::GrownBytes() const { return (PeakBytes() - peak_) / kMemory; }

}  // namespace onward
