// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/numbers/profile.h"

#include <sys/resource.h>

#include <algorithm>
#include <ostream>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/atomic_file.h"
#include "trainer/report/log/jsonl.h"

namespace onward {

int64_t PeakBytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) << 10;
}

void Profile::Add(const PlanStep& step, int64_t nanoseconds) {
  Row& row = rows_[step.node.op_type];
  row.nanoseconds += nanoseconds;
  ++row.calls;
  total_ += nanoseconds;
  events_.push_back({runs_, step.node.op_type, step.node.Describe(), nanoseconds});
}

std::vector<OperatorTime> Profile::PerRun() const {
  const int64_t runs = std::max(runs_, 1);
  std::vector<OperatorTime> times;
  for (const auto& [op, row] : rows_) {
    times.push_back({op, static_cast<double>(row.nanoseconds) * 1e-6 / static_cast<double>(runs),
                     row.calls / runs});
  }
  std::stable_sort(times.begin(), times.end(), [](const OperatorTime& a, const OperatorTime& b) {
    return a.milliseconds > b.milliseconds;
  });
  return times;
}

void Profile::Print(std::ostream& out) const {
  const double total = static_cast<double>(total_) * 1e-6 / std::max(runs_, 1);
  for (const OperatorTime& t : PerRun()) {
    out << absl::StrFormat("%6.2f %%  %9.3f ms  %5d x  %s\n", 100 * t.milliseconds / total,
                           t.milliseconds, t.calls, t.op);
  }
}

absl::Status Profile::WriteTrace(const std::string& path) const {
  JsonWriter w;
  w.BeginObject().Key("traceEvents").BeginArray();
  double at = 0;
  for (const Event& e : events_) {
    if (e.run != runs_) continue;
    const double microseconds = static_cast<double>(e.nanoseconds) * 1e-3;
    w.BeginObject().Field("ph", "X").Field("pid", 1).Field("tid", 1).Field("name", e.op);
    w.Field("ts", at).Field("dur", microseconds);
    w.Key("args").BeginObject().Field("node", e.name).EndObject().EndObject();
    at += microseconds;
  }
  w.EndArray().EndObject();
  return WriteFileAtomically(path, w.text() + "\n");
}

}  // namespace onward
