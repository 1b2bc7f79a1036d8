// SPDX-License-Identifier: Apache-2.0
// The parts of a report's page, each "" where there is nothing to show.
#ifndef ONWARD_TRAINER_REPORT_PAGE_REPORT_SECTIONS_H_
#define ONWARD_TRAINER_REPORT_PAGE_REPORT_SECTIONS_H_

#include <string>
#include <vector>

#include "trainer/report/page/report.h"
#include "trainer/report/page/report_chart.h"

namespace onward {

// Seconds after which a page of a run that goes on is loaded again.
inline constexpr int kRefreshSeconds = 5;
// Of charts that stand beside each other.
inline constexpr int kHalfWidth = 520, kHalfHeight = 260;

std::string FiguresHtml(const std::vector<ReportFigure>& figures);
std::string PairsHtml(const std::vector<ReportSetting>& pairs);
std::string CommandHtml(const std::string& command);

// Of what was said the warnings, or the rest.
std::string NotesHtml(const std::vector<ReportNote>& notes, bool warnings);
std::string CurvesHtml(const ReportData& data);
std::string ClassesHtml(const ReportData& data);
std::string CalibrationHtml(const ReportData& data);
std::string PredictedHtml(const ReportData& data);
std::string WrongHtml(const ReportData& data);
std::string AugmentationHtml(const ReportData& data);
std::string NormsHtml(const ReportData& data);
std::string OperatorsHtml(const ReportData& data);
std::string DefinitionsHtml(const ReportData& data);

// Losses of steps, smoothed as the figure "training loss" is.
std::vector<ChartPoint> SmoothedLosses(const std::vector<ReportStep>& steps);

// The length of all gradients together, at each moment.
std::vector<ChartPoint> GradientNorms(const std::vector<ReportNorms>& norms);

struct Definition {
  std::string name, meaning;
  bool (*shown)(const ReportData& data);
};
// What each number of a report is; docs/report.md has the same sentences.
const std::vector<Definition>& Definitions();

}  // namespace onward

#endif  // ONWARD_TRAINER_REPORT_PAGE_REPORT_SECTIONS_H_
