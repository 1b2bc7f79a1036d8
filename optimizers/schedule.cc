// SPDX-License-Identifier: Apache-2.0
#include "optimizers/schedule.h"

#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "core/base/spec.h"
#include "core/base/status.h"

namespace onward {
namespace {

// What a schedule does after its warm-up; every scalar but `step` is a double.
struct Decay {
  GraphBuilder& b;
  const ScheduleSpec& spec;
  double base_lr;
  Expr step;  // int64

  Expr Number(double value) const { return b.Constant(ScalarOf(DType::kDouble, value)); }
  double Option(const std::string& name) const;
  // Steps since the warm-up, as int64; 0 during it.
  Expr Since() const {
    const auto warmup = static_cast<int64_t>(Option("warmup"));
    return warmup == 0 ? step : Max(step - b.Int(warmup), b.Int(0));
  }
  // From 0 at the end of the warm-up to 1 at `total` and after.
  Expr Progress() const {
    const double steps = Option("total") - Option("warmup");
    return Min(Cast(Since(), DType::kDouble) / Number(steps), Number(1));
  }
};

Expr Constant(const Decay& d) { return d.Number(d.base_lr); }

// lr + (min - lr)*p
Expr Linear(const Decay& d) {
  return d.Number(d.base_lr) + d.Number(d.Option("min") - d.base_lr) * d.Progress();
}

// min + (lr - min)*(1 + cos(pi*p))/2
Expr Cosine(const Decay& d) {
  const double low = d.Option("min");
  const Expr wave = Cos(d.Progress() * d.Number(std::numbers::pi)) + d.Number(1);
  return d.Number(low) + d.Number((d.base_lr - low) / 2) * wave;
}

// lr * factor^floor(t/every)
Expr Stairs(const Decay& d) {
  const Expr drops = d.Since() / d.b.Int(static_cast<int64_t>(d.Option("every")));
  const Expr scale = Pow(d.Number(d.Option("factor")), Cast(drops, DType::kDouble));
  return d.Number(d.base_lr) * scale;
}

struct ScheduleDef {
  std::string name;
  std::vector<NumberOption> options;
  Expr (*decay)(const Decay& d);
};

const std::vector<ScheduleDef>& Schedules() {
  static const auto* schedules = [] {
    const NumberOption warmup = NumberOption::Count("warmup", 0, 0);
    const NumberOption total = NumberOption::Count("total", 0, 1);
    const NumberOption min = NumberOption::AtLeast("min", 0, 0);
    const NumberOption every = NumberOption::Count("every", 0, 1);
    const NumberOption factor = {
        .name = "factor", .otherwise = 0.1, .low = 0, .high = 1, .low_open = true};
    return new std::vector<ScheduleDef>{
        {"constant", {warmup}, Constant},
        {"cosine", {warmup, total, min}, Cosine},
        {"linear", {warmup, total, min}, Linear},
        {"step", {warmup, every, factor}, Stairs},
    };
  }();
  return *schedules;
}

absl::StatusOr<const ScheduleDef*> FindSchedule(const std::string& name) {
  for (const ScheduleDef& def : Schedules()) {
    if (def.name == name) return &def;
  }
  return UnknownWord("schedule", name, ScheduleNames());
}

bool Takes(const ScheduleDef& def, absl::string_view option) {
  for (const NumberOption& known : def.options) {
    if (known.name == option) return true;
  }
  return false;
}

std::string Kind(const ScheduleSpec& spec) { return absl::StrCat("schedule '", spec.name, "'"); }

double OptionOf(const ScheduleSpec& spec, const std::string& name) {
  const absl::StatusOr<const ScheduleDef*> def = FindSchedule(spec.name);
  return def.ok() ? ValueOf(spec.options, (*def)->options, name) : 0;
}

double Decay::Option(const std::string& name) const { return OptionOf(spec, name); }

// Conditions that do not need the base rate.
absl::Status CheckTogether(const ScheduleDef& def, const ScheduleSpec& spec) {
  if (Takes(def, "every") && !spec.options.contains("every")) {
    return absl::InvalidArgumentError(
        absl::StrCat(Kind(spec), " needs every=N, the steps between two drops"));
  }
  const double total = OptionOf(spec, "total"), warmup = OptionOf(spec, "warmup");
  if (Takes(def, "total") && total > 0 && warmup >= total) {
    return absl::InvalidArgumentError(absl::StrCat(
        Kind(spec), ": total counts the warm-up too and has to be greater than warmup; got total=",
        total, ", warmup=", warmup));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> ScheduleNames() {
  std::vector<std::string> names;
  for (const ScheduleDef& def : Schedules()) names.push_back(def.name);
  return names;
}

absl::StatusOr<ScheduleSpec> ParseSchedule(absl::string_view text) {
  ONWARD_ASSIGN_OR_RETURN(SpecText parsed, ParseSpecText(text));
  ONWARD_ASSIGN_OR_RETURN(const ScheduleDef* def, FindSchedule(parsed.name));
  ScheduleSpec spec{def->name, {}};
  ONWARD_ASSIGN_OR_RETURN(spec.options, ParseNumbers(Kind(spec), parsed.options, def->options));
  ONWARD_RETURN_IF_ERROR(CheckTogether(*def, spec));
  return spec;
}

bool NeedsTotal(const ScheduleSpec& spec) {
  const absl::StatusOr<const ScheduleDef*> def = FindSchedule(spec.name);
  return def.ok() && Takes(**def, "total") && !spec.options.contains("total");
}

absl::Status CheckSchedule(const ScheduleSpec& spec, double base_lr) {
  ONWARD_ASSIGN_OR_RETURN(const ScheduleDef* def, FindSchedule(spec.name));
  ONWARD_RETURN_IF_ERROR(CheckNumbers(Kind(spec), spec.options, def->options));
  ONWARD_RETURN_IF_ERROR(CheckTogether(*def, spec));
  ONWARD_RETURN_IF_ERROR(CheckNumber(NumberOption::AtLeast("lr", 0, 0), base_lr));
  if (NeedsTotal(spec)) {
    return absl::InvalidArgumentError(
        absl::StrCat(Kind(spec), " needs total=N, the number of steps after which it ends"));
  }
  if (OptionOf(spec, "min") > base_lr) {
    return absl::InvalidArgumentError(absl::StrCat(Kind(spec), ": min=", OptionOf(spec, "min"),
                                                   " is above the learning rate ", base_lr));
  }
  return absl::OkStatus();
}

Expr BuildSchedule(GraphBuilder& b, const ScheduleSpec& spec, double base_lr, const Expr& step,
                   DType dtype) {
  if (absl::Status status = CheckSchedule(spec, base_lr); !status.ok()) return b.Fail(status);
  const Decay d{b, spec, base_lr, step};
  const double warmup = d.Option("warmup");
  if (spec.name == "constant" && warmup == 0) return b.Constant(ScalarOf(dtype, base_lr));
  Expr rate = (*FindSchedule(spec.name))->decay(d);
  if (warmup > 0) {
    const Expr done = Cast(step, DType::kDouble) + d.Number(1);
    const Expr rising = d.Number(base_lr) * (done / d.Number(warmup));
    rate = Where(Less(step, b.Int(static_cast<int64_t>(warmup))), rising, rate);
  }
  return dtype == DType::kDouble ? rate : Cast(rate, dtype);
}

}  // namespace onward
