// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/numbers/part_figures.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace onward {
namespace {

// ", accuracy 97.10 %", ", RMSE 1.2345" or "".
std::string Judged(const std::string& output, double accuracy, double rmse) {
  const std::string of = output.empty() ? "" : absl::StrCat(output, " ");
  if (!std::isnan(accuracy)) return absl::StrFormat(", %saccuracy %.2f %%", of, 100 * accuracy);
  return std::isnan(rmse) ? "" : absl::StrFormat(", %sRMSE %.4f", of, rmse);
}

}  // namespace

std::string TrainingFigures(double loss, double accuracy) {
  if (std::isnan(loss)) return "";
  return absl::StrCat(absl::StrFormat("training loss %.4f", loss),
                      Judged("", accuracy, /*rmse=*/std::nan("")));
}

std::string ShortFigures(const Evaluation& e) {
  std::string text = absl::StrFormat("loss %.4f", e.loss);
  if (!std::isnan(e.perplexity)) absl::StrAppendFormat(&text, ", perplexity %.4g", e.perplexity);
  if (e.parts.size() < 2) return absl::StrCat(text, Judged("", e.accuracy, e.rmse));
  for (const PartEvaluation& part : e.parts) {
    absl::StrAppend(&text, Judged(part.output, part.accuracy, part.rmse));
  }
  return text;
}

std::vector<std::string> PartLines(const Evaluation& e) {
  std::vector<std::string> lines;
  if (e.parts.size() < 2) return lines;
  for (const PartEvaluation& part : e.parts) {
    std::string line = absl::StrFormat("%s: loss %.6g", part.name, part.loss);
    if (!std::isnan(part.accuracy)) {
      absl::StrAppendFormat(&line, ", accuracy %.2f %% (%d of %d right)", 100 * part.accuracy,
                            part.judged - part.wrong_total, part.judged);
    } else if (!std::isnan(part.rmse)) {
      absl::StrAppendFormat(&line, ", MAE %.6g, RMSE %.6g", part.mae, part.rmse);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

void WriteFigures(const std::string& prefix, const Evaluation& e, JsonWriter* w) {
  w->Field(prefix + "loss", e.loss);
  if (!std::isnan(e.accuracy)) w->Field(prefix + "accuracy", e.accuracy);
  if (!std::isnan(e.perplexity)) w->Field(prefix + "perplexity", e.perplexity);
  if (!std::isnan(e.rmse)) w->Field(prefix + "rmse", e.rmse).Field(prefix + "mae", e.mae);
  if (!std::isnan(e.r2)) w->Field(prefix + "r2", e.r2);
  if (e.parts.size() > 1) WriteParts(e.parts, &w->Key(prefix + "parts"));
}

void WriteParts(const std::vector<PartEvaluation>& parts, JsonWriter* w) {
  w->BeginArray();
  for (const PartEvaluation& part : parts) {
    w->BeginObject().Field("name", part.name).Field("output", part.output).Field("loss", part.loss);
    if (!std::isnan(part.accuracy)) {
      w->Field("accuracy", part.accuracy).Field("wrong", part.wrong_total);
    } else if (!std::isnan(part.rmse)) {
      w->Field("mae", part.mae).Field("rmse", part.rmse);
    }
    w->EndObject();
  }
  w->EndArray();
}

}  // namespace onward
