// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "trainer/report/page/html.h"
#include "trainer/report/page/report_sections.h"

namespace onward {
namespace {

bool HasSteps(const ReportData& d) { return !d.steps.empty(); }
bool HasEvals(const ReportData& d) { return !d.evals.empty(); }
bool HasClasses(const ReportData& d) { return d.confusion.has_value(); }
bool HasNumbers(const ReportData& d) { return HasEvals(d) && !d.metric_is_share; }

bool HasFigure(const ReportData& d, absl::string_view label) {
  return std::any_of(d.figures.begin(), d.figures.end(),
                     [&](const ReportFigure& f) { return f.label == label; });
}

bool HasBaseline(const ReportData& d) { return HasEvals(d) && d.evals[0].baseline; }

}  // namespace

const std::vector<Definition>& Definitions() {
  static const auto* const all = new std::vector<Definition>{
      {"Training loss",
       "the loss of the batches as they are trained on (dropout and augmentation included), "
       "smoothed: an exponential mean over the steps with decay 0.98, about the last 50 steps. "
       "The training accuracy is smoothed the same way.",
       HasSteps},
      {"Evaluation loss",
       "the mean over the evaluation data in inference mode: a loss over classes over the labels "
       "that count (padding and ignore_index do not, weight= tells how much), others over the "
       "examples; with several losses the sum with their weights.",
       HasEvals},
      {"Before training",
       "the same evaluation of the model as it was given, before the first step.", HasBaseline},
      {"Of averages",
       "the same evaluation of the averages of the weights (--ema), which `export --ema` writes.",
       [](const ReportData& d) { return HasFigure(d, "Loss of averages"); }},
      {"Best epoch",
       "the evaluation that is best by --metric (the loss unless said otherwise); the earliest of "
       "equal ones; the one before training does not take part.",
       HasEvals},
      {"Accuracy",
       "the share of answers whose most probable class is the label, of the labels that count.",
       HasClasses},
      {"Precision", "of the answers that are this class, the share that is right.", HasClasses},
      {"Recall", "of the examples of this class, the share that is recognised.", HasClasses},
      {"F1",
       "2 * right / (examples + answers) of the class, the harmonic mean of precision and recall.",
       HasClasses},
      {"Expected calibration error",
       "answers are put into 15 bins by the probability that the model gave them; the mean over "
       "all answers of the distance between the share of right answers and the mean probability of "
       "their bin.",
       [](const ReportData& d) { return d.calibration.has_value(); }},
      {"Perplexity",
       "e to the power of the mean of -log p over all labels that count, where the loss is a plain "
       "cross entropy over the positions of sequences.",
       [](const ReportData& d) { return d.perplexity; }},
      {"RMSE", "the square root of the mean of (predicted - actual)^2, in the units of the data.",
       HasNumbers},
      {"MAE", "the mean distance between predicted and actual.", HasNumbers},
      {"R2", "1 - sum (predicted - actual)^2 / sum (actual - mean of actual)^2.", HasNumbers},
      {"Skipped steps",
       "steps that changed nothing because their numbers were not finite (--on-nan skip), those "
       "of resumed runs included.",
       [](const ReportData& d) { return HasFigure(d, "Skipped steps"); }},
      {"Overflowed steps",
       "steps of this run that changed nothing because gradients overflowed under the scale of "
       "the loss.",
       [](const ReportData& d) { return HasFigure(d, "Overflowed steps"); }},
      {"Weight norm", "the square root of the sum of the squares of a layer's numbers.",
       [](const ReportData& d) { return !d.norms.empty(); }},
      {"Gradient norm",
       "the same of the gradient of the loss, before clipping, at the weights after the step, on "
       "the batch of that step.",
       [](const ReportData& d) { return !d.norms.empty(); }},
      {"Time a step by operator",
       "the mean over three early steps of the time that all nodes of the operator take.",
       [](const ReportData& d) { return !d.operators.empty(); }},
      {"Peak memory", "the most memory that the process had resident, data included.",
       [](const ReportData& d) { return !d.timing.empty(); }},
  };
  return *all;
}

std::string DefinitionsHtml(const ReportData& data) {
  std::string out;
  for (const Definition& d : Definitions()) {
    if (!d.shown(data)) continue;
    absl::StrAppend(&out, "<dt>", EscapeHtml(d.name), "</dt><dd>", EscapeHtml(d.meaning), "</dd>");
  }
  return out.empty() ? "" : absl::StrCat("<div class=\"card\"><dl>", out, "</dl></div>");
}

}  // namespace onward
