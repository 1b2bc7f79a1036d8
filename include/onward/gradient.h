// SPDX-License-Identifier: Apache-2.0
// Gradients as ONNX.
//
// Threads: MakeGradientModel may run on several threads at once.
#ifndef ONWARD_GRADIENT_H_
#define ONWARD_GRADIENT_H_

#include <string>
#include <vector>

#include "onward/environment.h"
#include "onward/model.h"
#include "onward/status.h"

namespace onward::api {

struct GradientModel {
  Model model;                         // the model with the gradients as further outputs
  std::vector<std::string> gradients;  // their names, in the order of `xs`, order by order
};

// A model of standard operators that, beside its own outputs, computes the derivatives of
// `y` (summed if it is not a single number) by each of `xs`: inputs, initializers or inner
// values. Where y does not depend on one, its gradient is zeros. `order` 2 differentiates
// each gradient by its x again, and so on up to 16.
Result<GradientModel> MakeGradientModel(const Model& model, const std::string& y,
                                        const std::vector<std::string>& xs, int order = 1,
                                        const Environment& environment = {});

}  // namespace onward::api

#endif  // ONWARD_GRADIENT_H_
