// SPDX-License-Identifier: Apache-2.0
// A run as its log (--log FILE.jsonl) tells it.
#ifndef ONWARD_TRAINER_REPORT_LOG_RUN_LOG_H_
#define ONWARD_TRAINER_REPORT_LOG_RUN_LOG_H_

#include <string>

#include "absl/status/status.h"
#include "trainer/run/listener.h"

namespace onward {

// Tells the listener the events of the log's lines. Lines of earlier versions, which have steps and
// evaluations alone, are understood; half a line at the end, of a run that goes on, is left out. An
// error names the line that is no part of a log. The run may not have ended.
absl::Status ReplayLog(const std::string& path, RunListener* listener);

}  // namespace onward

#endif  // ONWARD_TRAINER_REPORT_LOG_RUN_LOG_H_
