// SPDX-License-Identifier: Apache-2.0
// The confusion matrix as a drawing. Names keep their size: a matrix that is wider than the page
// is scrolled beneath the names of its rows.
#ifndef ONWARD_TRAINER_REPORT_PAGE_CONFUSION_CHART_H_
#define ONWARD_TRAINER_REPORT_PAGE_CONFUSION_CHART_H_

#include <string>
#include <vector>

#include "trainer/report/numbers/metrics.h"

namespace onward {

inline constexpr int64_t kMostDrawnClasses = 100;
// Up to so many classes squares hold their counts.
inline constexpr int64_t kMostCountedClasses = 25;

// Rows are actual classes, columns predicted ones; at most kMostDrawnClasses.
std::string RenderConfusion(const ConfusionMatrix& matrix, const std::vector<std::string>& names);

}  // namespace onward

#endif  // ONWARD_TRAINER_REPORT_PAGE_CONFUSION_CHART_H_
