// SPDX-License-Identifier: Apache-2.0
// The formulas of the optimizers for one element. Scalars are worked out in double from the float32
// attributes and rounded to the type of the arithmetic once.
#pragma once

#include "core/cuda/optimizer/step.h"
#include "core/cuda/types.cuh"

namespace onward::cuda {

// X' = X - R*(G + weight_decay*X)
template <class C>
struct SgdRule {
  static constexpr int kStates = 0;
  C r, decay;

  static __device__ SgdRule At(const StepParameters& p, double r, int64_t) {
    return {static_cast<C>(r), static_cast<C>(p.attributes[0])};
  }
  __device__ void operator()(C& x, C g, C*) const { x -= r * (g + decay * x); }
};

// r = R / (1 + T*decay_factor);  Gr = norm_coefficient*X + G;  H' = H + Gr^2
// X' = X - r*Gr / (sqrt(H') + epsilon)
template <class C>
struct AdagradRule {
  static constexpr int kStates = 1;
  C r, epsilon, norm;

  static __device__ AdagradRule At(const StepParameters& p, double r, int64_t t) {
    return {static_cast<C>(r / (1 + static_cast<double>(t) * p.attributes[0])),
            static_cast<C>(p.attributes[1]), static_cast<C>(p.attributes[2])};
  }
  __device__ void operator()(C& x, C g, C* state) const {
    g += norm * x;
    state[0] += g * g;
    x -= r * g / (Sqrt(state[0]) + epsilon);
  }
};

// Gr = norm_coefficient*X + G;  V' = alpha*V + (T > 0 ? beta : 1)*Gr
// standard: X' = X - R*V';  nesterov: X' = X - R*(Gr + alpha*V')
template <class C>
struct MomentumRule {
  static constexpr int kStates = 1;
  C r, alpha, beta, norm;
  bool nesterov;

  static __device__ MomentumRule At(const StepParameters& p, double r, int64_t t) {
    return {static_cast<C>(r), static_cast<C>(p.attributes[0]),
            static_cast<C>(t > 0 ? p.attributes[1] : 1.0), static_cast<C>(p.attributes[2]),
            p.attributes[3] != 0};
  }
  __device__ void operator()(C& x, C g, C* state) const {
    g += norm * x;
    state[0] = alpha * state[0] + beta * g;
    x -= r * (nesterov ? g + alpha * state[0] : state[0]);
  }
};

// Gr = norm_coefficient*X + G
// V' = alpha*V + (1-alpha)*Gr;  H' = beta*H + (1-beta)*Gr^2
// Ra = T > 0 ? R*sqrt(1-beta^T)/(1-alpha^T) : R
// X' = (1 - norm_coefficient_post) * (X - Ra*V' / (sqrt(H') + epsilon))
template <class C>
struct AdamRule {
  static constexpr int kStates = 2;
  C r, alpha, one_minus_alpha, beta, one_minus_beta, epsilon, norm, keep;

  static __device__ AdamRule At(const StepParameters& p, double r, int64_t t) {
    const double alpha = p.attributes[0], beta = p.attributes[1], steps = static_cast<double>(t);
    const double corrected = t > 0 ? r * sqrt(1 - pow(beta, steps)) / (1 - pow(alpha, steps)) : r;
    return {static_cast<C>(corrected),       static_cast<C>(alpha),
            static_cast<C>(1 - alpha),       static_cast<C>(beta),
            static_cast<C>(1 - beta),        static_cast<C>(p.attributes[2]),
            static_cast<C>(p.attributes[3]), static_cast<C>(1 - p.attributes[4])};
  }
  __device__ void operator()(C& x, C g, C* state) const {
    g += norm * x;
    state[0] = alpha * state[0] + one_minus_alpha * g;
    state[1] = beta * state[1] + one_minus_beta * (g * g);
    x = keep * (x - r * state[0] / (Sqrt(state[1]) + epsilon));
  }
};

// X1 = X * (1 - R*weight_decay)
// V' = alpha*V + (1-alpha)*G;  H' = beta*H + (1-beta)*G^2
// c = sqrt(1 - beta^T);  X' = X1 - R*c / (1 - alpha^T) * V' / (sqrt(H') + epsilon + eps*c)
template <class C>
struct AdamWRule {
  static constexpr int kStates = 2;
  C r, alpha, one_minus_alpha, beta, one_minus_beta, epsilon, keep;

  static __device__ AdamWRule At(const StepParameters& p, double r, int64_t t) {
    const double alpha = p.attributes[0], beta = p.attributes[1], steps = static_cast<double>(t);
    const double c = sqrt(1 - pow(beta, steps));
    return {static_cast<C>(r * c / (1 - pow(alpha, steps))),
            static_cast<C>(alpha),
            static_cast<C>(1 - alpha),
            static_cast<C>(beta),
            static_cast<C>(1 - beta),
            static_cast<C>(p.attributes[2] + p.attributes[3] * c),
            static_cast<C>(1 - r * p.attributes[4])};
  }
  __device__ void operator()(C& x, C g, C* state) const {
    state[0] = alpha * state[0] + one_minus_alpha * g;
    state[1] = beta * state[1] + one_minus_beta * (g * g);
    x = keep * x - r * state[0] / (Sqrt(state[1]) + epsilon);
  }
};

}  // namespace onward::cuda
