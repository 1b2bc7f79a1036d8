// SPDX-License-Identifier: Apache-2.0
// Dynamic loss scaling as nodes and state. Gradients of float16 values vanish where they are small,
// so the loss is differentiated times a large number, as large as gradients stay finite: it is
// halved by a step whose gradients are not, which then counts for nothing, and doubled after
// many steps without (PyTorch's GradScaler).
#ifndef ONWARD_TRAINING_INFO_LOSS_SCALE_H_
#define ONWARD_TRAINING_INFO_LOSS_SCALE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/builder.h"
#include "training_info/author_state.h"
#include "training_info/step.h"

namespace onward {

class LossScale {
 public:
  static constexpr double kStart = 65536, kGrowth = 2, kBackoff = 0.5;
  static constexpr int64_t kGrowthInterval = 2000;
  // A step that overflows at this scale is not the scale's fault, and not left out: its new
  // values are refused like any that are not finite.
  static constexpr double kSmallest = 1.0 / 16384;

  // Adds the variables.
  LossScale(GraphBuilder& b, AlgorithmState* state);

  const std::string& name() const { return scale_; }  // of the variable
  // What is differentiated.
  Expr Scaled(const Expr& loss) const;
  // The gradients of the loss itself.
  std::vector<Expr> Unscaled(GraphBuilder& b, std::vector<Expr> gradients) const;
  // Whether the step counts, a bool; the variables are bound accordingly.
  Expr Judge(GraphBuilder& b, const std::vector<Expr>& gradients, AlgorithmState* state) const;

 private:
  std::string scale_, growth_, skipped_;
};

// What a file says of its scaling; nothing where it scales no loss.
struct ScaleFacts {
  double scale = 0;      // 0: not known
  int64_t skipped = -1;  // steps that overflowed so far; -1: not counted
};
std::optional<ScaleFacts> StoredScale(const Model& model, const TrainingSpec& spec);

// Steps that overflowed so far; nothing where the file scales no loss.
std::optional<int64_t> SkippedSteps(const TrainingModel& model);
// The present scale; 0 where there is none.
double LossScaleNow(const TrainingModel& model);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_LOSS_SCALE_H_
