// SPDX-License-Identifier: Apache-2.0
// The table behind schedule.h: what each schedule takes, and its curve after the warm-up.
#ifndef ONWARD_OPTIMIZERS_SCHEDULE_SHAPES_H_
#define ONWARD_OPTIMIZERS_SCHEDULE_SHAPES_H_

#include <string>
#include <vector>

#include "core/base/spec.h"
#include "optimizers/schedule.h"

namespace onward {

// What a schedule does after its warm-up; every scalar but `step` is a double.
struct Decay {
  GraphBuilder& b;
  const ScheduleSpec& spec;
  double base_lr;
  Expr step;  // int64

  Expr Number(double value) const { return b.Constant(ScalarOf(DType::kDouble, value)); }
  double Option(const std::string& name) const;
  // Steps since the warm-up, as int64; 0 during it.
  Expr Since() const;
  // From 0 at the end of the warm-up to 1 at `total` and after.
  Expr Progress() const;
};

struct ScheduleDef {
  std::string name;
  std::string summary;
  std::vector<NumberOption> options;  // `warmup` is added to those of every schedule
  // Options that have no default, with what they are.
  std::vector<std::pair<std::string, std::string>> required = {};
  std::vector<std::string> lists = {};  // of steps: 4/9/20; all are required
  // PyTorch's names of options that have shorter ones here.
  std::vector<std::pair<std::string, std::string>> aliases = {};
  Expr (*decay)(const Decay& d) = nullptr;
};

const std::vector<ScheduleDef>& Schedules();
absl::StatusOr<const ScheduleDef*> FindSchedule(const std::string& name);

}  // namespace onward

#endif  // ONWARD_OPTIMIZERS_SCHEDULE_SHAPES_H_
