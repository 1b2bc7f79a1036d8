// SPDX-License-Identifier: Apache-2.0
// What is known of a run before its first step, as people and as programs read it.
#ifndef ONWARD_TRAINER_REPORT_TERMINAL_STATEMENT_H_
#define ONWARD_TRAINER_REPORT_TERMINAL_STATEMENT_H_

#include <string>
#include <vector>

#include "trainer/run/listener.h"

namespace onward {

// A line for each setting, and one for the time where it is known.
std::vector<std::string> StatementLines(const RunFacts& facts);

// "note: ..." or "warning: ...".
std::string NoteLine(const ReportNote& note);

// "time        about 1:02:03 (12.3 ms a step, evaluations apart)".
std::string TimeLine(int64_t steps, double step_seconds);

// One JSON object.
std::string FactsJson(const RunFacts& facts);

}  // namespace onward

#endif  // ONWARD_TRAINER_REPORT_TERMINAL_STATEMENT_H_
