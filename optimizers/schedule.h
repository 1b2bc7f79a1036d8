// SPDX-License-Identifier: Apache-2.0
// Learning-rate schedules as ONNX graphs: the rate as a function of the step, so that a
// file alone tells how training goes on. A schedule is named with options, as in
//
//   cosine:warmup=100,total=1000,min=1e-5
//
// docs/training-recipes.md lists them. Options have names of their own, and PyTorch's too.
//
// Step t (from 0) of a warm-up of w steps has the rate lr*(t+1)/w. total counts the
// warm-up too; afterwards the rate stays where it is. Whatever else counts steps counts from
// the end of the warm-up.
#ifndef ONWARD_OPTIMIZERS_SCHEDULE_H_
#define ONWARD_OPTIMIZERS_SCHEDULE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/spec.h"
#include "core/graph/builder.h"

namespace onward {

struct ScheduleSpec {
  std::string name = "constant";
  std::map<std::string, double> options;  // only those given
  std::map<std::string, std::vector<double>> lists = {};
};

// The schedule that is no function of the step alone: who trains multiplies the rate by a
// variable (training_info/rate.h), as PyTorch's ReduceLROnPlateau does.
inline constexpr char kReduceOnPlateau[] = "reduce_on_plateau";

std::vector<std::string> ScheduleNames();

// What docs/training-recipes.md says of each.
std::vector<Description> DescribeSchedules();

absl::StatusOr<ScheduleSpec> ParseSchedule(absl::string_view text);

// What ParseSchedule reads back.
std::string ScheduleText(const ScheduleSpec& spec);

// An option of a valid spec: as given, or its default.
double OptionOf(const ScheduleSpec& spec, const std::string& name);

// Whether `total` still has to be filled in, by whoever knows how long training lasts.
bool NeedsTotal(const ScheduleSpec& spec);

// Whether the options go together and with this base rate; BuildSchedule asks too.
absl::Status CheckSchedule(const ScheduleSpec& spec, double base_lr);

// The rate at `step`, an int64 scalar that counts from 0, as a scalar of type `dtype`.
// Computed in double. Errors are the builder's.
Expr BuildSchedule(GraphBuilder& b, const ScheduleSpec& spec, double base_lr, const Expr& step,
                   DType dtype);

}  // namespace onward

#endif  // ONWARD_OPTIMIZERS_SCHEDULE_H_
