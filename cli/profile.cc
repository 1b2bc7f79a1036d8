// SPDX-License-Identifier: Apache-2.0
#include "cli/profile.h"

#include <algorithm>
#include <ostream>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/atomic_file.h"
#include "trainer/report/jsonl.h"

namespace onward {

void Profile::Add(const PlanStep& step, int64_t nanoseconds) {
  Row& row = rows_[step.node.op_type];
  row.nanoseconds += nanoseconds;
  ++row.calls;
  total_ += nanoseconds;
  events_.push_back({runs_, step.node.op_type, step.node.Describe(), nanoseconds});
}

void Profile::Print(std::ostream& out) const {
  std::vector<std::pair<std::string, Row>> rows(rows_.begin(), rows_.end());
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.second.nanoseconds > b.second.nanoseconds;
  });
  const int64_t runs = std::max(runs_, 1);
  for (const auto& [op, row] : rows) {
    out << absl::StrFormat(
        "%6.2f %%  %9.3f ms  %5d x  %s\n",
        100.0 * static_cast<double>(row.nanoseconds) / static_cast<double>(total_),
        static_cast<double>(row.nanoseconds) * 1e-6 / static_cast<double>(runs), row.calls / runs,
        op);
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
