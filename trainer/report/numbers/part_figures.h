// SPDX-License-Identifier: Apache-2.0
// The figures of an evaluation in words and as JSON, the same wherever they are shown.
#ifndef ONWARD_TRAINER_REPORT_NUMBERS_PART_FIGURES_H_
#define ONWARD_TRAINER_REPORT_NUMBERS_PART_FIGURES_H_

#include <string>
#include <vector>

#include "trainer/report/log/jsonl.h"
#include "trainer/run/evaluate.h"

namespace onward {

// "training loss 0.1234, accuracy 97.10 %", as far as it is known; "" where nothing is.
std::string TrainingFigures(double loss, double accuracy);

// "loss 0.1234, accuracy 97.10 %" or "loss 0.1234, RMSE 1.2345", with the perplexity where there
// is one; the accuracy or error of each output where several are compared: "loss 1.2, y
// accuracy 97.10 %, z RMSE 0.5".
std::string ShortFigures(const Evaluation& evaluation);

// A line for each of several losses: "0.1*l1@mask: loss 3.3, MAE 3.3, RMSE 4.1".
std::vector<std::string> PartLines(const Evaluation& evaluation);

// Fields of an object that is open: PREFIXloss, and PREFIXaccuracy, PREFIXperplexity, PREFIXrmse,
// PREFIXmae and PREFIXr2 where they were measured, PREFIXparts where there are several losses.
void WriteFigures(const std::string& prefix, const Evaluation& evaluation, JsonWriter* w);

// [{"name":"0.1*l1@mask","output":"mask","loss":3.3,"mae":3.3,"rmse":4.1}, ...]
void WriteParts(const std::vector<PartEvaluation>& parts, JsonWriter* w);

}  // namespace onward

#endif  // ONWARD_TRAINER_REPORT_NUMBERS_PART_FIGURES_H_
