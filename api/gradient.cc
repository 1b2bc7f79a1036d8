// SPDX-License-Identifier: Apache-2.0
#include "onward/gradient.h"

#include "api/access.h"
#include "training_info/gradient_model.h"

namespace onward::api {

Result<GradientModel> MakeGradientModel(const Model& model, const GradientRequest& request,
                                        const Environment& environment) {
  return Converted<GradientModel>(
      [&] {
        return onward::MakeGradientModel(Access::FromModel(model),
                                         {request.ys, request.xs, request.order, request.seeds,
                                          request.stop, request.hessian_vector},
                                         Access::FromEnvironment(environment));
      },
      [](onward::GradientModel made) {
        return GradientModel{Access::ToModel(std::move(made.model)), std::move(made.gradients),
                             std::move(made.products), std::move(made.vectors)};
      });
}

Result<GradientModel> MakeGradientModel(const Model& model, const std::string& y,
                                        const std::vector<std::string>& xs, int order,
                                        const Environment& environment) {
  GradientRequest request;
  request.ys = {y};
  request.xs = xs;
  request.order = order;
  return MakeGradientModel(model, request, environment);
}

}  // namespace onward::api
