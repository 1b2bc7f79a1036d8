// SPDX-License-Identifier: Apache-2.0
// The confusion matrix as a drawing. It is as wide as what holds it on a desktop at most, as long
// as squares stay large enough for their counts, or for a line of text. Names keep their size: what
// is wider than its place is scrolled beneath the names of the rows.
#ifndef ONWARD_TRAINER_REPORT_PAGE_CONFUSION_CHART_H_
#define ONWARD_TRAINER_REPORT_PAGE_CONFUSION_CHART_H_

#include <string>
#include <vector>

#include "trainer/report/numbers/metrics.h"

namespace onward {

inline constexpr int64_t kMostDrawnClasses = 100;
// Up to so many classes squares hold their counts.
inline constexpr int64_t kMostCountedClasses = 25;
// Up to so many the matrix stands beside the tables of classes.
inline constexpr int64_t kMostClassesBeside = 12;
// What holds it there, and alone, in pixels (report_style.h).
inline constexpr double kBesideWidth = 534, kAloneWidth = 990;

// Rows are actual classes, columns predicted ones; at most kMostDrawnClasses.
std::string RenderConfusion(const ConfusionMatrix& matrix, const std::vector<std::string>& names);

}  // namespace onward

#endif  // ONWARD_TRAINER_REPORT_PAGE_CONFUSION_CHART_H_
