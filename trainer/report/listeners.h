// SPDX-License-Identifier: Apache-2.0
// Who listens to a run (trainer/run/listener.h).
#ifndef ONWARD_TRAINER_REPORT_LISTENERS_H_
#define ONWARD_TRAINER_REPORT_LISTENERS_H_

#include <memory>
#include <string>

#include "trainer/report/terminal/progress.h"
#include "trainer/run/listener.h"

namespace onward {

// What of a run is told beside how far it is: its settings, notes and evaluations too, or
// warnings alone.
enum class ProgressTalk { kAll, kWarnings };

// How far it is, and figures of evaluations, on standard error.
std::unique_ptr<RunListener> ProgressListener(ProgressStyle style,
                                              ProgressTalk talk = ProgressTalk::kAll);

// One JSON object per step and per evaluation, one before them (what is known of the run) and one
// at the end; run_log.h reads them. A resumed run continues the file.
std::unique_ptr<RunListener> LogListener(std::string path);

// The HTML page, written when the run ends and there is something to show of it; with `watch`
// also at every evaluation and checkpoint, as a page that browsers load again by themselves.
std::unique_ptr<RunListener> ReportListener(std::string path, bool watch);

// Event files for TensorBoard in `folder`, which is made. A resumed run adds a file there.
std::unique_ptr<RunListener> TensorBoardListener(std::string folder);

}  // namespace onward

#endif  // ONWARD_TRAINER_REPORT_LISTENERS_H_
