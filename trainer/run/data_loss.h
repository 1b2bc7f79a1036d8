// SPDX-License-Identifier: Apache-2.0
// The mean of a loss over a data set that is seen batch by batch: the same number whatever the
// size of the batches.
#ifndef ONWARD_TRAINER_RUN_DATA_LOSS_H_
#define ONWARD_TRAINER_RUN_DATA_LOSS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/report/numbers/metrics.h"
#include "trainer/run/judging.h"
#include "training_info/loss_parts.h"

namespace onward {

// A loss over classes is, of a batch, the mean over the labels that count in it (ignore_index does
// not), by the weights of their classes where it has such: batches weigh by those. Other losses
// weigh by their examples.
class DataLoss {
 public:
  // The value of a loss that is `alone` has its weight already.
  DataLoss(const LossPart& part, const Judging& judging, bool alone);

  void Add(double value, const std::optional<Judge::Answers>& answers, int64_t examples);
  // Before the weight of the loss; NaN where nothing counted.
  double mean() const { return mean_.mean() / weight_; }

 private:
  double Counted(const Tensor& labels) const;

  double weight_;
  bool by_labels_;
  std::optional<int64_t> ignored_;
  std::vector<double> class_weights_;  // none: all are 1
  RunningMean mean_;
};

}  // namespace onward

#endif  // ONWARD_TRAINER_RUN_DATA_LOSS_H_
