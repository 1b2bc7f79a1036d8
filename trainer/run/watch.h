// SPDX-License-Identifier: Apache-2.0
// What evaluations decide: whether the rate is reduced, whether the run goes on, and whether its
// end is worth less than what it was in between.
#ifndef ONWARD_TRAINER_RUN_WATCH_H_
#define ONWARD_TRAINER_RUN_WATCH_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "optimizers/schedule.h"
#include "trainer/run/evaluate.h"

namespace onward {

// Metadata: the best value so far, and what else it takes to go on.
inline constexpr char kMetaPlateau[] = "onward.plateau";
inline constexpr char kMetaPatience[] = "onward.patience";

// Reduces a rate where evaluations stop becoming better, exactly as PyTorch's ReduceLROnPlateau:
// its options, and the rate is base_rate times a factor.
class Plateau {
 public:
  Plateau(const ScheduleSpec& schedule, double base_rate)
      : schedule_(schedule), base_rate_(base_rate) {
    best_ = Start();
  }

  // Goes on where `state` was written; an error if it was not.
  absl::Status Resume(const std::string& state);
  std::string State() const;

  // After an evaluation. Whether the factor was reduced.
  bool Observe(double value, double* factor);

 private:
  bool Maximizes() const { return OptionOf(schedule_, "mode") != 0; }
  double Start() const;
  bool IsBetter(double value) const;

  ScheduleSpec schedule_;
  double base_rate_;
  double best_;
  int64_t bad_ = 0, cooldown_ = 0;
};

// Ends a run after so many evaluations in a row that are no better than the best before.
class Patience {
 public:
  Patience(int64_t limit, bool higher_is_better)
      : limit_(limit), higher_is_better_(higher_is_better) {}

  absl::Status Resume(const std::string& state);
  std::string State() const;

  // After an evaluation. Whether the run shall end.
  bool Observe(double value);

 private:
  int64_t limit_;
  bool higher_is_better_;
  std::optional<double> best_;
  int64_t worse_ = 0;
};

// The best evaluation of a run, for one that ends with a worse model.
class BestSeen {
 public:
  explicit BestSeen(Metric metric) : metric_(metric) {}

  void Observe(int64_t step, double value);
  // What to say at the end; "" where the last evaluation is about as good as the best. `best_file`:
  // what keeps the best, or "".
  std::string Hint(const std::string& best_file) const;

 private:
  Metric metric_;
  int64_t best_step_ = 0;
  std::optional<double> best_, last_;
};

}  // namespace onward

#endif  // ONWARD_TRAINER_RUN_WATCH_H_
