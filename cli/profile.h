// SPDX-License-Identifier: Apache-2.0
// Where the time of a run goes: a table per operator and a trace for a browser.
#ifndef ONWARD_CLI_PROFILE_H_
#define ONWARD_CLI_PROFILE_H_

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/runtime/plan/plan.h"

namespace onward {

class Profile {
 public:
  void BeginRun() { ++runs_; }
  void Add(const PlanStep& step, int64_t nanoseconds);

  // Milliseconds per run of each operator, the largest first.
  void Print(std::ostream& out) const;
  // The last run in Chrome's trace format (chrome://tracing, Perfetto).
  absl::Status WriteTrace(const std::string& path) const;

 private:
  struct Row {
    int64_t nanoseconds = 0, calls = 0;
  };
  struct Event {
    int run;
    std::string op, name;
    int64_t nanoseconds;
  };
  std::map<std::string, Row> rows_;
  std::vector<Event> events_;
  int64_t total_ = 0;
  int runs_ = 0;
};

}  // namespace onward

#endif  // ONWARD_CLI_PROFILE_H_
