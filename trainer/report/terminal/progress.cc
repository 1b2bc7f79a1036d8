// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/terminal/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace onward {
namespace {

constexpr double kBarInterval = 0.1;
constexpr double kLineInterval = 5;
constexpr int kSmallestBar = 10;
constexpr int kLargestBar = 30;

int TerminalWidth(std::FILE* out) {
  winsize size{};
  if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

bool CanRedraw(std::FILE* out) {
  const char* terminal = std::getenv("TERM");
  return isatty(fileno(out)) && terminal != nullptr && absl::string_view(terminal) != "dumb";
}

double Fraction(const ProgressFigures& f) {
  if (f.total <= 0) return 0;
  return std::clamp(static_cast<double>(f.step) / static_cast<double>(f.total), 0.0, 1.0);
}

// Most important first.
std::vector<std::string> Figures(const ProgressFigures& f) {
  std::vector<std::string> out;
  out.push_back(f.total > 0 ? absl::StrCat(f.step, "/", f.total) : absl::StrCat("step ", f.step));
  if (!std::isnan(f.loss)) out.push_back(absl::StrFormat("loss %.4g", f.loss));
  if (!std::isnan(f.accuracy)) out.push_back(absl::StrFormat("acc %.1f%%", 100 * f.accuracy));
  if (std::isfinite(f.seconds_left) && f.step < f.total) {
    out.push_back(absl::StrCat("ETA ", FormatSeconds(f.seconds_left)));
  }
  if (f.samples_per_second > 0) {
    out.push_back(absl::StrFormat(f.samples_per_second < 10 ? "%.1f samples/s" : "%.0f samples/s",
                                  f.samples_per_second));
  }
  return out;
}

std::string DrawBar(double fraction, int cells) {
  const int done = static_cast<int>(fraction * cells);
  std::string bar(done, '=');
  if (done < cells) bar += '>';
  bar.resize(cells, ' ');
  return absl::StrCat("[", bar, "]");
}

}  // namespace

std::string FormatSeconds(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 3.6e8) return "?";
  const int64_t s = static_cast<int64_t>(std::ceil(seconds));
  if (s >= 3600) return absl::StrFormat("%d:%02d:%02d", s / 3600, s / 60 % 60, s % 60);
  return absl::StrFormat("%d:%02d", s / 60, s % 60);
}

std::string FormatBar(const ProgressFigures& figures, int width) {
  const double fraction = Fraction(figures);
  std::string head = figures.label;
  if (figures.total > 0) absl::StrAppendFormat(&head, " %3d%%", static_cast<int>(100 * fraction));
  std::string tail;
  const int smallest = figures.total > 0 ? kSmallestBar + 3 : 0;
  for (const std::string& figure : Figures(figures)) {
    if (static_cast<int>(head.size() + tail.size() + figure.size()) + 2 + smallest > width) break;
    absl::StrAppend(&tail, "  ", figure);
  }
  const int cells = std::min(width - static_cast<int>(head.size() + tail.size()) - 3, kLargestBar);
  if (figures.total > 0 && cells >= kSmallestBar) {
    absl::StrAppend(&head, " ", DrawBar(fraction, cells));
  }
  return (head + tail).substr(0, std::max(width, 0));
}

std::string FormatLine(const ProgressFigures& figures) {
  std::string line = figures.label;
  for (const std::string& figure : Figures(figures)) absl::StrAppend(&line, "  ", figure);
  return line;
}

Progress::Progress(Options options) : options_(std::move(options)) {
  if (!options_.clock) {
    options_.clock = [] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
          .count();
    };
  }
  quiet_ = options_.style == ProgressStyle::kQuiet;
  bar_ = options_.style == ProgressStyle::kBar ||
         (options_.style == ProgressStyle::kAuto && CanRedraw(options_.out));
  figures_.label = options_.label;
  figures_.step = options_.first_step;
  figures_.total = options_.total_steps;
  started_ = now();
  drawn_at_ = started_;
}

double Progress::samples_per_second() const {
  const double elapsed = seconds();
  return elapsed > 0 ? static_cast<double>(samples_) / elapsed : 0;
}

void Progress::Update(int64_t step, int64_t samples, double loss, double accuracy) {
  if (finished_) return;
  samples_ += samples;
  figures_.step = step;
  figures_.loss = loss;
  figures_.accuracy = accuracy;
  pending_ = true;
  if (quiet_ || now() - drawn_at_ < (bar_ ? kBarInterval : kLineInterval)) return;
  Draw();
}

void Progress::Draw() {
  const double time = now();
  figures_.samples_per_second = samples_per_second();
  const int64_t done = figures_.step - options_.first_step;
  figures_.seconds_left = done > 0 ? (time - started_) / static_cast<double>(done) *
                                         static_cast<double>(figures_.total - figures_.step)
                                   : std::nan("");
  if (bar_) {
    // One column stays free: some terminals wrap when the last one is written.
    const std::string line = FormatBar(figures_, TerminalWidth(options_.out) - 1);
    std::fprintf(options_.out, "\r%s\x1b[K", line.c_str());
    bar_on_screen_ = true;
  } else {
    std::fprintf(options_.out, "%s\n", FormatLine(figures_).c_str());
  }
  std::fflush(options_.out);
  drawn_at_ = time;
  pending_ = false;
}

void Progress::Erase() {
  if (!bar_on_screen_) return;
  std::fprintf(options_.out, "\r\x1b[K");
  bar_on_screen_ = false;
}

void Progress::Say(absl::string_view line) {
  if (quiet_) return;
  const bool redraw = bar_on_screen_ && !finished_;
  Erase();
  std::fprintf(options_.out, "%.*s\n", static_cast<int>(line.size()), line.data());
  if (redraw) Draw();
  std::fflush(options_.out);
}

void Progress::Finish() {
  if (finished_) return;
  if (!quiet_ && pending_) Draw();
  if (bar_on_screen_) std::fprintf(options_.out, "\n");
  std::fflush(options_.out);
  bar_on_screen_ = false;
  finished_ = true;
}

}  // namespace onward
