// SPDX-License-Identifier: Apache-2.0
#include "onward/gradient.h"

#include "api/access.h"
#include "training_info/gradient_model.h"

namespace onward::api {

Result<GradientModel> MakeGradientModel(const Model& model, const std::string& y,
                                        const std::vector<std::string>& xs, int order,
                                        const Environment& environment) {
  return Converted<GradientModel>(
      [&] {
        return onward::MakeGradientModel(Access::FromModel(model), y, xs, order,
                                         Access::FromEnvironment(environment));
      },
      [](onward::GradientModel made) {
        return GradientModel{Access::ToModel(std::move(made.model)), std::move(made.gradients)};
      });
}

}  // namespace onward::api
