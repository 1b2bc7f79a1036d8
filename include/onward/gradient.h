// SPDX-License-Identifier: Apache-2.0
// Gradients as ONNX.
//
// Threads: MakeGradientModel may run on several threads at once.
#ifndef ONWARD_GRADIENT_H_
#define ONWARD_GRADIENT_H_

#include <map>
#include <string>
#include <vector>

#include "onward/environment.h"
#include "onward/model.h"
#include "onward/status.h"

namespace onward::api {

struct GradientModel {
  Model model;                         // the model with the gradients as further outputs
  std::vector<std::string> gradients;  // their names, in the order of `xs`, order by order
  // With GradientRequest::hessian_vector, in the order of `xs`: the outputs that hold the
  // products, and the new inputs that take the vectors.
  std::vector<std::string> products = {}, vectors = {};
};

// What to derive by what.
struct GradientRequest {
  // What is differentiated: the sum of all elements of all of these.
  std::vector<std::string> ys;
  // By what: inputs, initializers or inner values.
  std::vector<std::string> xs;
  // 2 differentiates each gradient by its x again, and so on up to 16.
  int order = 1;
  // y -> what its gradient starts from in the place of ones: the name of a value of the model,
  // or else of a new input that has the type of y.
  std::map<std::string, std::string> seeds = {};
  // Values past which no gradient is handed on: they count as constants. One that is among
  // the xs still gets its own gradient.
  std::vector<std::string> stop = {};
  // Whether the model also computes H*v: H is the Hessian of the ys by all xs together, v a new
  // input for each x. Only with order 1.
  bool hessian_vector = false;
};

// A model of standard operators that, beside its own outputs, computes the derivatives asked
// for. Where nothing depends on an x, its gradient is zeros.
Result<GradientModel> MakeGradientModel(const Model& model, const GradientRequest& request,
                                        const Environment& environment = {});

// The same for one y (summed if it is not a single number).
Result<GradientModel> MakeGradientModel(const Model& model, const std::string& y,
                                        const std::vector<std::string>& xs, int order = 1,
                                        const Environment& environment = {});

}  // namespace onward::api

#endif  // ONWARD_GRADIENT_H_
