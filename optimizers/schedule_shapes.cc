// SPDX-License-Identifier: Apache-2.0
#include "optimizers/schedule_shapes.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/strings/str_replace.h"

namespace onward {
namespace {

Expr Constant(const Decay& d) { return d.Number(d.base_lr); }

// lr + (min - lr)*p
Expr Linear(const Decay& d) {
  return d.Number(d.base_lr) + d.Number(d.Option("min") - d.base_lr) * d.Progress();
}

// min + (lr - min)*(1 - p)^power
Expr Polynomial(const Decay& d) {
  const double low = d.Option("min");
  const Expr left = Pow(d.Number(1) - d.Progress(), d.Number(d.Option("power")));
  return d.Number(low) + d.Number(d.base_lr - low) * left;
}

// From one rate to another along half a cosine, p going from 0 to 1.
Expr Wave(const Decay& d, double from, double to, const Expr& p) {
  const Expr wave = Cos(p * d.Number(std::numbers::pi)) + d.Number(1);
  return d.Number(to) + d.Number((from - to) / 2) * wave;
}

// min + (lr - min)*(1 + cos(pi*p))/2
Expr Cosine(const Decay& d) { return Wave(d, d.base_lr, d.Option("min"), d.Progress()); }

// lr * factor^floor(t/every)
Expr Stairs(const Decay& d) {
  const Expr drops = d.Since() / d.b.Int(static_cast<int64_t>(d.Option("every")));
  const Expr scale = Pow(d.Number(d.Option("factor")), Cast(drops, DType::kDouble));
  return d.Number(d.base_lr) * scale;
}

// How many of the steps have come.
Expr Passed(const Decay& d, std::vector<int64_t> steps) {
  const Expr reached = LessOrEqual(d.b.Ints(std::move(steps)), d.Since());
  return ReduceSumAll(Cast(reached, DType::kInt64));
}

// lr * factor^(how many of `at` have come)
Expr Milestones(const Decay& d) {
  std::vector<int64_t> at;
  for (const double step : d.spec.lists.at("at")) at.push_back(static_cast<int64_t>(step));
  const Expr drops = Cast(Passed(d, std::move(at)), DType::kDouble);
  return d.Number(d.base_lr) * Pow(d.Number(d.Option("factor")), drops);
}

// lr * gamma^t
Expr Exponential(const Decay& d) {
  return d.Number(d.base_lr) * Pow(d.Number(d.Option("gamma")), Cast(d.Since(), DType::kDouble));
}

// Periods of `period` steps, each `factor` times as long as the one before. Where they
// begin is written out: a logarithm would miss the very step.
Expr CosineRestarts(const Decay& d) {
  constexpr double kEnd = 0x1p53;
  double length = d.Option("period"), start = 0;
  const double low = d.Option("min"), factor = d.Option("factor");
  const auto curve = [&](const Expr& since, const Expr& all) {
    const Expr p = Cast(since, DType::kDouble) / Cast(all, DType::kDouble);
    return Wave(d, d.base_lr, low, p);
  };
  if (factor == 1) {
    const Expr all = d.b.Int(static_cast<int64_t>(length));
    return curve(d.b.Op("Mod", {d.Since(), all}), all);
  }
  std::vector<int64_t> starts, lengths;
  for (; start < kEnd; start += length, length *= factor) {
    starts.push_back(static_cast<int64_t>(start));
    lengths.push_back(static_cast<int64_t>(std::min(length, kEnd)));
  }
  const Expr index = Passed(d, starts) - d.b.Int(1);
  return curve(d.Since() - Gather(d.b.Ints(starts), index), Gather(d.b.Ints(lengths), index));
}

// From start = max/div_factor up to max, and down to start/final_div_factor; with
// three_phase by way of start. The phases end at steps that need not be whole.
Expr OneCycle(const Decay& d) {
  const double high = d.spec.options.contains("max") ? d.Option("max") : d.base_lr;
  const double start = high / d.Option("div_factor"), low = start / d.Option("final_div_factor");
  const double steps = d.Option("total") - d.Option("warmup");
  const double rise = d.Option("pct_start") * steps - 1, end = steps - 1;
  const Expr t = Min(Cast(d.Since(), DType::kDouble), d.Number(end));
  const auto phase = [&](double begin, double until, double from, double to) {
    const double length = until > begin ? until - begin : 1;
    const Expr p = (t - d.Number(begin)) / d.Number(length);
    if (d.Option("anneal_strategy") == 0) return Wave(d, from, to, p);
    return d.Number(from) + d.Number(to - from) * p;
  };
  const auto until = [&](double step, const Expr& before, const Expr& after) {
    return Where(LessOrEqual(t, d.Number(step)), before, after);
  };
  const bool three = d.Option("three_phase") != 0;
  const double fall = three ? 2 * rise : rise;
  Expr rate = phase(fall, end, three ? start : high, low);
  if (three) rate = until(fall, phase(rise, fall, high, start), rate);
  return rise > 0 ? until(rise, phase(0, rise, start, high), rate) : rate;
}

}  // namespace

Expr Decay::Since() const {
  const auto warmup = static_cast<int64_t>(Option("warmup"));
  return warmup == 0 ? step : Max(step - b.Int(warmup), b.Int(0));
}

Expr Decay::Progress() const {
  const double steps = Option("total") - Option("warmup");
  return Min(Cast(Since(), DType::kDouble) / Number(steps), Number(1));
}

double Decay::Option(const std::string& name) const { return OptionOf(spec, name); }

const std::vector<ScheduleDef>& Schedules() {
  static const auto* schedules = [] {
    const NumberOption total = NumberOption::Count("total", 0, 1);
    const NumberOption min = NumberOption::AtLeast("min", 0, 0);
    const NumberOption factor = {
        .name = "factor", .otherwise = 0.1, .low = 0, .high = 1, .low_open = true};
    auto* all = new std::vector<ScheduleDef>{
        {.name = "constant", .summary = "the base rate", .options = {}, .decay = Constant},
        {.name = "cosine",
         .summary = "down to `min` at step `total`, along half a cosine",
         .options = {total, min},
         .aliases = {{"T_max", "total"}, {"eta_min", "min"}},
         .decay = Cosine},
        {.name = "cosine_restarts",
         .summary =
             "the same within `period` steps, then again; each period `factor` times as long",
         .options = {NumberOption::Count("period", 0, 1), NumberOption::Count("factor", 1, 1), min},
         .required = {{"period", "the steps of the first period"}},
         .aliases = {{"T_0", "period"}, {"T_mult", "factor"}, {"eta_min", "min"}},
         .decay = CosineRestarts},
        {.name = "exponential",
         .summary = "times `gamma` at each step",
         .options = {{.name = "gamma", .otherwise = 0, .low = 0, .high = 1, .low_open = true}},
         .required = {{"gamma", "the factor of one step"}},
         .decay = Exponential},
        {.name = "linear",
         .summary = "down to `min` at step `total`, along a line",
         .options = {total, min},
         .aliases = {{"total_iters", "total"}},
         .decay = Linear},
        {.name = "multistep",
         .summary = "times `factor` at each of the steps `at`",
         .options = {factor},
         .lists = {"at"},
         .aliases = {{"milestones", "at"}, {"gamma", "factor"}},
         .decay = Milestones},
        {.name = "onecycle",
         .summary = "from `max`/`div_factor` up to `max` (without it the base rate) and down to "
                    "`final_div_factor` below where it began",
         .options = {NumberOption::Positive("max", 0),
                     total,
                     {.name = "pct_start", .otherwise = 0.3, .low = 0, .high = 1},
                     NumberOption::Words("anneal_strategy", {"cos", "linear"}),
                     NumberOption::Positive("div_factor", 25),
                     NumberOption::Positive("final_div_factor", 1e4),
                     NumberOption::Switch("three_phase")},
         .aliases = {{"max_lr", "max"}, {"total_steps", "total"}},
         .decay = OneCycle},
        {.name = "polynomial",
         .summary = "down to `min` at step `total`, as (1 - t/total)^power",
         .options = {total, NumberOption::Positive("power", 1), min},
         .aliases = {{"total_iters", "total"}},
         .decay = Polynomial},
        {.name = kReduceOnPlateau,
         .summary = "times `factor` where evaluations have not become better more than `patience` "
                    "times in a row; `train` does it, with --eval",
         .options = {{.name = "factor",
                      .otherwise = 0.1,
                      .low = 0,
                      .high = 1,
                      .low_open = true,
                      .high_open = true},
                     NumberOption::Count("patience", 10, 0),
                     NumberOption::AtLeast("threshold", 1e-4, 0),
                     NumberOption::Words("threshold_mode", {"rel", "abs"}),
                     NumberOption::Count("cooldown", 0, 0),
                     NumberOption::AtLeast("min_lr", 0, 0),
                     NumberOption::AtLeast("eps", 1e-8, 0),
                     NumberOption::Words("mode", {"min", "max"})},
         .decay = Constant},
        {.name = "step",
         .summary = "times `factor` after each `every` steps",
         .options = {NumberOption::Count("every", 0, 1), factor},
         .required = {{"every", "the steps between two drops"}},
         .aliases = {{"step_size", "every"}, {"gamma", "factor"}},
         .decay = Stairs},
    };
    for (ScheduleDef& def : *all) def.options.push_back(NumberOption::Count("warmup", 0, 0));
    return all;
  }();
  return *schedules;
}

absl::StatusOr<const ScheduleDef*> FindSchedule(const std::string& name) {
  const std::string spelled = absl::StrReplaceAll(name, {{"-", "_"}});
  for (const ScheduleDef& def : Schedules()) {
    if (def.name == spelled) return &def;
  }
  return UnknownWord("schedule", name, ScheduleNames());
}

double OptionOf(const ScheduleSpec& spec, const std::string& name) {
  const absl::StatusOr<const ScheduleDef*> def = FindSchedule(spec.name);
  return def.ok() ? ValueOf(spec.options, (*def)->options, name) : 0;
}

}  // namespace onward
