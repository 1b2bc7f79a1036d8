// SPDX-License-Identifier: Apache-2.0
#include "cli/rates.h"

#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/atomic_file.h"
#include "core/base/status.h"
#include "trainer/report/log/jsonl.h"
#include "trainer/report/page/report.h"

namespace onward {
namespace {

absl::Status WriteLog(const std::string& path, const RateSearch& search) {
  ONWARD_ASSIGN_OR_RETURN(JsonlFile file, JsonlFile::Open(path, /*append=*/false));
  for (const RateTrial& trial : search.curve) {
    JsonWriter w;
    w.BeginObject()
        .Field("learning_rate", trial.rate)
        .Field("loss", trial.loss)
        .Field("smoothed_loss", trial.smoothed);
    ONWARD_RETURN_IF_ERROR(file.Append(w.EndObject()));
  }
  return absl::OkStatus();
}

absl::Status WritePage(const Args& args, const RateSearch& search) {
  ReportData data;
  data.title = absl::StrCat("Learning rates for ", args.Argument("MODEL"));
  data.subtitle = "a step with each rate; the rate grows by the same factor from step to step";
  const auto figure = [](const char* label, double value, const std::string& note) {
    return ReportFigure{label, absl::StrFormat("%.2g", value), note};
  };
  data.figures = {figure("Suggested rate", search.suggested, "a third into the longest descent"),
                  figure("Rate of the least loss", search.least.rate,
                         absl::StrFormat("loss %.4g, smoothed", search.least.smoothed))};
  for (const RateTrial& trial : search.curve) {
    data.steps.push_back({.step = static_cast<int64_t>(data.steps.size()) + 1,
                          .loss = trial.loss,
                          .learning_rate = trial.rate});
  }
  for (const RateTrial& trial : search.curve) {
    data.settings.push_back(
        {absl::StrFormat("%.2g", trial.rate), absl::StrFormat("loss %.4g", trial.smoothed)});
  }
  return WriteFileAtomically(args.String("report"), RenderReport(data));
}

void PrintJson(const RateSearch& search) {
  JsonWriter w;
  w.BeginObject().Field("suggested_lr", search.suggested).Key("curve").BeginArray();
  for (const RateTrial& trial : search.curve) {
    w.BeginArray().Value(trial.rate).Value(trial.smoothed).EndArray();
  }
  std::cout << w.EndArray().EndObject().text() << "\n";
}

}  // namespace

absl::Status ShowRates(const Args& args, const RateSearch& search) {
  if (args.Has("log")) ONWARD_RETURN_IF_ERROR(WriteLog(args.String("log"), search));
  if (args.Has("report")) ONWARD_RETURN_IF_ERROR(WritePage(args, search));
  if (args.Has("json")) {
    PrintJson(search);
    return absl::OkStatus();
  }
  const RateTrial &first = search.curve.front(), &last = search.curve.back();
  std::cout << absl::StrFormat(
      "suggested: --lr %.2g (%d rates tried, %.2g to %.2g; loss %.4g at first, least %.4g at "
      "%.2g)\n",
      search.suggested, search.curve.size(), first.rate, last.rate, first.smoothed,
      search.least.smoothed, search.least.rate);
  return absl::OkStatus();
}

}  // namespace onward
