// SPDX-License-Identifier: Apache-2.0
// What a run costs: time per operator, as a table and as a trace for a browser, and memory.
#ifndef ONWARD_TRAINER_REPORT_NUMBERS_PROFILE_H_
#define ONWARD_TRAINER_REPORT_NUMBERS_PROFILE_H_

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/runtime/plan/plan.h"
#include "trainer/report/page/report.h"

namespace onward {

// The most memory that this process had resident.
int64_t PeakBytes();

class Profile {
 public:
  void BeginRun() { ++runs_; }
  void Add(const PlanStep& step, int64_t nanoseconds);

  // What a run takes, the slowest operator first.
  std::vector<OperatorTime> PerRun() const;
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

#endif  // ONWARD_TRAINER_REPORT_NUMBERS_PROFILE_H_
