// SPDX-License-Identifier: Apache-2.0
// Gradient rules of operators that draw random numbers. A draw does not depend
// on its inputs; Dropout scales by a draw that its mask records.
#include <optional>
#include <vector>

#include "autograd/rule.h"
#include "core/tensor/tensor.h"

namespace onward {
namespace {

enum class Training { kOff, kOn, kAtRunTime };

Training TrainingMode(const Vjp& v) {
  if (!v.has_x(2)) return Training::kOff;
  const Tensor* mode = v.b().ConstantOf(v.node().inputs[2]);
  if (mode == nullptr) return Training::kAtRunTime;
  absl::StatusOr<std::vector<int64_t>> value = ToInts(*mode);
  if (!value.ok() || value->size() != 1) return Training::kAtRunTime;
  return value->front() != 0 ? Training::kOn : Training::kOff;
}

// training: y = x * mask / (1 - ratio);  dx = dy * mask / (1 - ratio)
// else:     y = x;                       dx = dy
Grads DropoutVjp(const Vjp& v) {
  const Training training = TrainingMode(v);
  if (training == Training::kOff) return {v.dy()};
  Expr scale = v.has_x(1) ? 1.0 / (1.0 - CastLike(v.x(1), v.dy())) : v.b().Scalar(2, v.dy());
  // Outside training the mask is all true.
  if (training == Training::kAtRunTime) scale = Where(v.x(2), scale, v.b().Scalar(1, v.dy()));
  return {ZeroUnless(v.RequireOutput(1), v.dy() * scale)};
}

}  // namespace

void RegisterRandomRules(RuleTable& table) {
  table.Add("Dropout", DropoutVjp);
  for (const char* op : {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
                         "Bernoulli", "Multinomial"}) {
    table.AddZero(op);
  }
}

}  // namespace onward
