// SPDX-License-Identifier: Apache-2.0
// onward report.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/commands.h"
#include "core/base/atomic_file.h"
#include "core/base/status.h"
#include "trainer/report/log/jsonl.h"
#include "trainer/report/log/run_log.h"
#include "trainer/report/page/run_record.h"

namespace onward {
namespace {

constexpr auto kBetweenLooks = std::chrono::seconds(1);

absl::Status CheckReportFlags(const Args& args) {
  if (args.Has("watch") && !args.Has("output")) {
    return absl::InvalidArgumentError("--watch writes a page again and again: it needs -o FILE");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ReportData>> ReadRuns(const std::vector<std::string>& logs) {
  std::vector<ReportData> runs;
  for (const std::string& log : logs) {
    RunRecord record;
    ONWARD_RETURN_IF_ERROR(ReplayLog(log, &record));
    runs.push_back(record.Data());
    // Several runs may have written to files of one name.
    if (logs.size() > 1) runs.back().title = log;
  }
  return runs;
}

absl::Status WriteReportPage(const std::string& path, std::vector<ReportData> runs, bool watched) {
  // Nobody writes the page again when the run goes on, unless it is watched.
  for (ReportData& run : runs) run.running &= watched;
  return WriteFileAtomically(path,
                             runs.size() == 1 ? RenderReport(runs[0]) : RenderComparison(runs));
}

// Whenever a log has grown, until all runs have ended or Ctrl-C.
absl::Status WatchLogs(const std::vector<std::string>& logs, const std::string& path) {
  uintmax_t seen = 0;
  while (!Interrupted()) {
    uintmax_t bytes = 0;
    std::error_code error;
    for (const std::string& log : logs) bytes += std::filesystem::file_size(log, error);
    if (bytes != seen) {
      ONWARD_ASSIGN_OR_RETURN(std::vector<ReportData> runs, ReadRuns(logs));
      seen = bytes;
      const bool going_on =
          std::any_of(runs.begin(), runs.end(), [](const ReportData& run) { return run.running; });
      ONWARD_RETURN_IF_ERROR(WriteReportPage(path, std::move(runs), true));
      if (!going_on) return absl::OkStatus();
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
  ONWARD_ASSIGN_OR_RETURN(std::vector<ReportData> runs, ReadRuns(logs));
  return WriteReportPage(path, std::move(runs), false);
}

void PrintRuns(const std::vector<ReportData>& runs) {
  for (const ReportData& run : runs) {
    std::cout << run.title << ": " << run.subtitle << "\n";
    if (!run.early.empty()) std::cout << "  " << run.early << "\n";
    for (const ReportFigure& f : run.figures) {
      std::cout << absl::StrFormat("  %-16s %s%s\n", f.label, f.value,
                                   f.note.empty() ? "" : absl::StrCat(" (", f.note, ")"));
    }
    for (const ReportSetting& t : run.timing) {
      std::cout << absl::StrFormat("  %-16s %s\n", t.name, t.value);
    }
  }
}

void PrintRunsJson(const std::vector<ReportData>& runs) {
  for (const ReportData& run : runs) {
    JsonWriter w;
    w.BeginObject().Field("title", run.title).Field("command", run.command);
    w.Field("running", run.running).Field("steps", run.steps.size());
    if (!run.early.empty()) w.Field("ended_early", run.early);
    w.Key("figures").BeginObject();
    for (const ReportFigure& f : run.figures) w.Field(f.label, f.value);
    for (const ReportSetting& t : run.timing) w.Field(t.name, t.value);
    std::cout << w.EndObject().EndObject().text() << "\n";
  }
}

absl::StatusOr<int> RunReport(const Args& args) {
  WatchInterrupts();
  const std::vector<std::string> logs = args.Arguments("LOG");
  const std::string path = args.String("output");
  if (args.Has("watch")) ONWARD_RETURN_IF_ERROR(WatchLogs(logs, path));
  ONWARD_ASSIGN_OR_RETURN(const std::vector<ReportData> runs, ReadRuns(logs));
  if (!path.empty() && !args.Has("watch")) {
    ONWARD_RETURN_IF_ERROR(WriteReportPage(path, runs, /*watched=*/false));
  }
  if (args.Has("json")) {
    PrintRunsJson(runs);
  } else {
    PrintRuns(runs);
    if (!path.empty()) std::cout << "report: " << path << "\n";
  }
  return 0;
}

}  // namespace

Command ReportCommand() {
  return {.name = "report",
          .summary = "the report of a run from its log, or several runs beside each other",
          .arguments = {{.name = "LOG",
                         .help = "what `onward train --log FILE.jsonl` wrote; of several the page "
                                 "compares the runs",
                         .repeated = true}},
          .flags = {Flag::Value("output", "FILE.html",
                                "the page to write; without it the figures are printed alone")
                        .Short('o')
                        .Names(FlagNames::kResult),
                    Flag::Switch("watch",
                                 "write the page again whenever a log grows, until all runs have "
                                 "ended or Ctrl-C; browsers load it again every 5 seconds"),
                    Flag::Switch("json", "print one JSON object for each run")},
          .example =
              "onward report a.jsonl b.jsonl -o compared.html\n"
              "onward report running.jsonl -o running.html --watch",
          .check = CheckReportFlags,
          .run = RunReport};
}

}  // namespace onward
