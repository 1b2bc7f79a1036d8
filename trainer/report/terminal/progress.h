// SPDX-License-Identifier: Apache-2.0
// How far a run is, on standard error: a bar that is redrawn on a terminal,
// plain lines now and then elsewhere, nothing when quiet.
#ifndef ONWARD_TRAINER_REPORT_TERMINAL_PROGRESS_H_
#define ONWARD_TRAINER_REPORT_TERMINAL_PROGRESS_H_

#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <string>

#include "absl/strings/string_view.h"

namespace onward {

enum class ProgressStyle { kAuto, kBar, kLines, kQuiet };

struct ProgressFigures {
  std::string label;  // "train"
  int64_t step = 0;
  int64_t total = 0;                                           // 0: unknown
  double loss = std::numeric_limits<double>::quiet_NaN();      // NaN: not shown
  double accuracy = std::numeric_limits<double>::quiet_NaN();  // NaN: not shown
  double samples_per_second = 0;
  double seconds_left = std::numeric_limits<double>::quiet_NaN();
};

// "train  42% [=====>     ] 420/1000  loss 0.1234  acc 97.1%  12345 samples/s  ETA 0:42",
// at most `width` columns: the last figures are left out where they do not fit.
std::string FormatBar(const ProgressFigures& figures, int width);
// The same figures as a line without a bar.
std::string FormatLine(const ProgressFigures& figures);
// "0:42", "1:02:03".
std::string FormatSeconds(double seconds);

class Progress {
 public:
  struct Options {
    std::string label = "train";
    int64_t first_step = 0;  // steps done before this run
    int64_t total_steps = 0;
    ProgressStyle style = ProgressStyle::kAuto;
    std::FILE* out = stderr;
    std::function<double()> clock;  // seconds; by default a steady clock
  };

  explicit Progress(Options options);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { Finish(); }

  // After each step; `samples` is how many it used. Draws ten times a second at
  // most (a line every five seconds where there is no terminal).
  void Update(int64_t step, int64_t samples, double loss, double accuracy);
  // A line of text that stays; the bar moves below it. Not shown when quiet.
  void Say(absl::string_view line);
  // Draws the last state and ends the line. Further calls do nothing.
  void Finish();

  // Over the whole run so far.
  double samples_per_second() const;
  double seconds() const { return now() - started_; }

 private:
  double now() const { return options_.clock(); }
  void Draw();
  void Erase();

  Options options_;
  bool bar_ = false;
  bool quiet_ = false;
  ProgressFigures figures_;
  double started_ = 0;
  double drawn_at_ = 0;
  int64_t samples_ = 0;
  bool bar_on_screen_ = false;
  bool pending_ = false;  // an update is not drawn yet
  bool finished_ = false;
};

}  // namespace onward

#endif  // ONWARD_TRAINER_REPORT_TERMINAL_PROGRESS_H_
