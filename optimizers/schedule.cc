// SPDX-License-Identifier: Apache-2.0
#include "optimizers/schedule.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/spec.h"
#include "core/base/status.h"
#include "optimizers/schedule_shapes.h"

namespace onward {
namespace {

bool Takes(const ScheduleDef& def, absl::string_view option) {
  for (const NumberOption& known : def.options) {
    if (known.name == option) return true;
  }
  return false;
}

std::string Kind(const ScheduleSpec& spec) { return absl::StrCat("schedule '", spec.name, "'"); }

// Options in their own names, and the lists among them.
absl::Status TakeLists(const ScheduleDef& def, std::map<std::string, std::string>* given,
                       ScheduleSpec* spec) {
  for (const auto& [alias, name] : def.aliases) {
    auto node = given->extract(alias);
    if (node.empty()) continue;
    node.key() = name;
    if (!given->insert(std::move(node)).inserted) {
      return absl::InvalidArgumentError(
          absl::StrCat(Kind(*spec), ": '", alias, "' is '", name, "', which is given too"));
    }
  }
  for (const std::string& list : def.lists) {
    const auto node = given->extract(list);
    if (node.empty()) continue;
    for (absl::string_view part : absl::StrSplit(node.mapped(), '/')) {
      const absl::StatusOr<double> value = ParseNumber(NumberOption::Count(list, 0, 0), part);
      if (!value.ok()) return Annotate(value.status(), Kind(*spec));
      spec->lists[list].push_back(*value);
    }
  }
  return absl::OkStatus();
}

// Conditions that do not need the base rate.
absl::Status CheckTogether(const ScheduleDef& def, const ScheduleSpec& spec) {
  for (const auto& [option, meaning] : def.required) {
    if (spec.options.contains(option)) continue;
    return absl::InvalidArgumentError(absl::StrCat(Kind(spec), " needs ", option, "=N, ", meaning));
  }
  for (const std::string& list : def.lists) {
    if (spec.lists.contains(list)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(Kind(spec), " needs ", list, "=N/N/..., the steps at which the rate drops"));
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

std::vector<Description> DescribeSchedules() {
  std::vector<Description> all;
  for (const ScheduleDef& def : Schedules()) {
    Description& schedule = all.emplace_back(Description{def.name, def.summary, {}});
    for (const std::string& list : def.lists) {
      schedule.options.push_back({list, "needed", "steps with '/' between them"});
    }
    for (const NumberOption& option : def.options) {
      OptionDescription text = Describe(option);
      for (const auto& [name, meaning] : def.required) {
        if (name == option.name) text.otherwise = "needed";
      }
      if (option.name == "total") text.otherwise = "the run's steps";
      if (option.name == "max") text.otherwise = "lr";
      schedule.options.push_back(std::move(text));
    }
    for (OptionDescription& option : schedule.options) {
      for (const auto& [alias, name] : def.aliases) {
        if (name == option.name) absl::StrAppend(&option.expects, "; also ", alias);
      }
    }
  }
  return all;
}

absl::StatusOr<ScheduleSpec> ParseSchedule(absl::string_view text) {
  ONWARD_ASSIGN_OR_RETURN(SpecText parsed, ParseSpecText(text));
  ONWARD_ASSIGN_OR_RETURN(const ScheduleDef* def, FindSchedule(parsed.name));
  ScheduleSpec spec{def->name, {}};
  ONWARD_RETURN_IF_ERROR(TakeLists(*def, &parsed.options, &spec));
  ONWARD_ASSIGN_OR_RETURN(spec.options, ParseNumbers(Kind(spec), parsed.options, def->options));
  ONWARD_RETURN_IF_ERROR(CheckTogether(*def, spec));
  return spec;
}

std::string ScheduleText(const ScheduleSpec& spec) {
  const absl::StatusOr<const ScheduleDef*> def = FindSchedule(spec.name);
  std::map<std::string, std::string> options;
  if (def.ok()) options = NumberTexts(spec.options, (*def)->options);
  for (const auto& [name, values] : spec.lists) {
    options[name] =
        absl::StrJoin(values, "/", [](std::string* out, double v) { out->append(ExactText(v)); });
  }
  return SpecToText({spec.name, options});
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
    return absl::InvalidArgumentError(absl::StrCat(
        Kind(spec), " needs total=N, the number of steps after which it ends (`train` knows it)"));
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
  const ScheduleDef& def = **FindSchedule(spec.name);
  Expr rate = def.decay(d);
  if (warmup > 0) {  // until its end the rate is the one that the schedule begins with
    const Expr done = Cast(step, DType::kDouble) + d.Number(1);
    rate = rate * Min(done / d.Number(warmup), d.Number(1));
  }
  return dtype == DType::kDouble ? rate : Cast(rate, dtype);
}

}  // namespace onward
