// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/terminal/statement.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "trainer/report/log/jsonl.h"
#include "trainer/report/terminal/progress.h"

namespace onward {

std::vector<std::string> StatementLines(const RunFacts& facts) {
  std::vector<std::string> lines;
  for (const ReportSetting& setting : facts.settings) {
    lines.push_back(
        absl::StrFormat("%-11s %s", absl::AsciiStrToLower(setting.name), setting.value));
  }
  if (!std::isnan(facts.step_seconds)) {
    lines.push_back(TimeLine(facts.total_steps - facts.first_step, facts.step_seconds));
  }
  return lines;
}

std::string NoteLine(const ReportNote& note) {
  return absl::StrCat(note.warning ? "warning: " : "note: ", note.text);
}

std::string TimeLine(int64_t steps, double step_seconds) {
  const std::string each = step_seconds < 1 ? absl::StrFormat("%.3g ms", 1e3 * step_seconds)
                                            : absl::StrFormat("%.1f s", step_seconds);
  return absl::StrFormat("%-11s about %s (%s a step, evaluations apart)", "time",
                         FormatSeconds(static_cast<double>(steps) * step_seconds), each);
}

std::string FactsJson(const RunFacts& facts) {
  JsonWriter w;
  w.BeginObject()
      .Field("model", facts.model)
      .Field("steps", facts.total_steps)
      .Field("steps_done", facts.first_step)
      .Field("steps_per_epoch", facts.steps_per_epoch)
      .Field("batch", facts.batch)
      .Field("examples", facts.examples)
      .Field("trained", facts.trained)
      .Field("trained_numbers", facts.trained_numbers)
      .Field("frozen", facts.frozen)
      .Field("frozen_numbers", facts.frozen_numbers)
      .Field("memory_bytes", facts.memory_bytes);
  w.Key("classes").Values(facts.class_names);
  if (!std::isnan(facts.step_seconds)) w.Field("step_seconds", facts.step_seconds);
  w.Key("settings").BeginObject();
  for (const ReportSetting& setting : facts.settings) {
    w.Field(absl::AsciiStrToLower(setting.name), setting.value);
  }
  w.EndObject();
  w.Key("notes").Values(facts.notes).Key("warnings").Values(facts.warnings);
  return w.EndObject().text();
}

}  // namespace onward
