// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/cases.h"

namespace onward {

std::vector<OpCase> ActivationCases() {
  return {
      Case("Relu", {Real({3, 4})}).Unknown({0}),
      Case("LeakyRelu", {Real({3, 4})}),
      Case("LeakyRelu_alpha", {Real({3, 4})}, {{"alpha", 0.3}}),
      Case("PRelu", {Real({3, 4}), Real({3, 4})}),
      Case("PRelu_broadcast", {Real({2, 3, 4}), Real({3, 1})}),
      Case("Elu", {Real({3, 4})}),
      Case("Elu_alpha", {Real({3, 4})}, {{"alpha", 0.7}}),
      Case("Selu", {Real({3, 4})}),
      Case("Selu_attributes", {Real({3, 4})}, {{"alpha", 1.2}, {"gamma", 0.8}}),
      Case("Celu", {Real({3, 4})}),
      Case("Celu_alpha", {Real({3, 4})}, {{"alpha", 1.7}}),
      Case("Sigmoid", {Real({3, 4})}).Unknown({0}),
      Case("HardSigmoid", {Real({3, 4}, -4, 4, {-2.5, 2.5})}),
      Case("HardSigmoid_attributes", {Real({3, 4}, -4, 4, {-1, 1.5})},
           {{"alpha", 0.4}, {"beta", 0.4}}),
      Case("HardSwish", {Real({3, 4}, -5, 5, {-3, 3})}),
      Case("Tanh", {Real({3, 4})}),
      Case("Softplus", {Real({3, 4})}),
      Case("Softsign", {Real({3, 4})}),
      Case("ThresholdedRelu", {Real({3, 4}, -2, 2, {1})}),
      Case("ThresholdedRelu_alpha", {Real({3, 4}, -2, 2, {0.4})}, {{"alpha", 0.4}}),
      Case("Gelu", {Real({3, 4})}),
      Case("Gelu_tanh", {Real({3, 4})}, {{"approximate", "tanh"}}),
      Case("Mish", {Real({3, 4})}),
      Case("Swish", {Real({3, 4})}),
      Case("Swish_alpha", {Real({3, 4})}, {{"alpha", 1.5}}),
      Case("SwiGLU", {Real({3, 4}), Real({3, 4})}),
      Case("SwiGLU_alpha", {Real({3, 4}), Real({3, 4})}, {{"alpha", 1.5}}),
      Case("Shrink", {Real({3, 4}, -2, 2, {-0.5, 0.5})}),
      Case("Shrink_attributes", {Real({3, 4}, -2, 2, {-1, 1})}, {{"lambd", 1.0}, {"bias", 0.3}}),
  };
}

}  // namespace onward
