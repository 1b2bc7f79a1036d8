// SPDX-License-Identifier: Apache-2.0
// The formulas of the optimizers, for one vector of elements. Scalars are worked
// out in double from the float32 attributes and rounded to the tensors' type once.
#ifndef ONWARD_CORE_OPS_OPTIMIZER_OPTIMIZER_RULES_H_
#define ONWARD_CORE_OPS_OPTIMIZER_OPTIMIZER_RULES_H_

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/device/kernel.h"
#include "core/device/plan/optimizer.h"
#include "core/ops/cpu/vec.h"
#include "core/tensor/dispatch.h"

namespace onward {

// Each rule below has kStates, kHasT, Make(node) and At(R, T), which gives the
// scalars of one step; Update<T> then maps (x, g, states) to new values. Its Bound is
// no less than the absolute value of anything the map computes, given the largest ones
// of x, g and the states, if the squares among these are not negative; infinite where
// nothing can be said.

// Of r * a / (sqrt(h) + epsilon), for h >= 0.
inline double QuotientBound(double r, double a, double epsilon) {
  const double product = std::abs(r) * a;
  return epsilon > 0 ? product + product / epsilon : std::numeric_limits<double>::infinity();
}

// Of both moments of Adam and of what it makes of them.
template <typename Update>
double MomentsBound(const Update& u, double g, const double* state) {
  if (!(u.beta >= 0 && u.one_minus_beta >= 0)) return std::numeric_limits<double>::infinity();
  const double v = std::abs(u.alpha) * state[0] + std::abs(u.one_minus_alpha) * g;
  const double h = u.beta * state[1] + g * g;
  return v + h + QuotientBound(u.r, v, u.epsilon);
}

// X' = X - R*(G + weight_decay*X)
struct Sgd : SgdAttributes {
  struct Scalars {
    double r, weight_decay;
  };
  Scalars At(double r, int64_t) const { return {r, weight_decay}; }

  template <typename T>
  struct Update {
    explicit Update(const Scalars& s) : r(s.r), decay(s.weight_decay) {}
    void operator()(Vec<T>& x, Vec<T> g, Vec<T>*) const { x -= r * (g + decay * x); }
    double Bound(double x, double g, const double*) const {
      const double moved = g + std::abs(decay) * x;
      return x + moved + std::abs(r) * moved;
    }
    T r, decay;
  };
};

// r = R / (1 + T*decay_factor);  Gr = norm_coefficient*X + G;  H' = H + Gr^2
// X' = X - r*Gr / (sqrt(H') + epsilon)
struct Adagrad : AdagradAttributes {
  struct Scalars {
    double r, epsilon, norm;
  };
  Scalars At(double r, int64_t t) const {
    return {r / (1 + static_cast<double>(t) * decay_factor), epsilon, norm};
  }

  template <typename T>
  struct Update {
    explicit Update(const Scalars& s) : r(s.r), epsilon(s.epsilon), norm(s.norm) {}
    void operator()(Vec<T>& x, Vec<T> g, Vec<T>* state) const {
      g += norm * x;
      state[0] += g * g;
      x -= r * g / (Sqrt(state[0]) + epsilon);
    }
    double Bound(double x, double g, const double* state) const {
      const double gr = g + std::abs(norm) * x;
      return x + state[0] + gr * gr + QuotientBound(r, gr, epsilon);
    }
    T r, epsilon, norm;
  };
};

// Gr = norm_coefficient*X + G;  V' = alpha*V + (T > 0 ? beta : 1)*Gr
// standard: X' = X - R*V';  nesterov: X' = X - R*(Gr + alpha*V')
struct Momentum : MomentumAttributes {
  struct Scalars {
    double r, alpha, beta, norm;
    bool nesterov;
  };
  Scalars At(double r, int64_t t) const { return {r, alpha, t > 0 ? beta : 1, norm, nesterov}; }

  template <typename T>
  struct Update {
    explicit Update(const Scalars& s)
        : r(s.r), alpha(s.alpha), beta(s.beta), norm(s.norm), nesterov(s.nesterov) {}
    void operator()(Vec<T>& x, Vec<T> g, Vec<T>* state) const {
      g += norm * x;
      state[0] = alpha * state[0] + beta * g;
      x -= r * (nesterov ? g + alpha * state[0] : state[0]);
    }
    double Bound(double x, double g, const double* state) const {
      const double gr = g + std::abs(norm) * x;
      const double v = std::abs(alpha) * state[0] + std::abs(beta) * gr;
      const double moved = gr + v + std::abs(alpha) * v;
      return x + moved + std::abs(r) * moved;
    }
    T r, alpha, beta, norm;
    bool nesterov;
  };
};

// Gr = norm_coefficient*X + G
// V' = alpha*V + (1-alpha)*Gr;  H' = beta*H + (1-beta)*Gr^2
// Ra = T > 0 ? R*sqrt(1-beta^T)/(1-alpha^T) : R
// X' = (1 - norm_coefficient_post) * (X - Ra*V' / (sqrt(H') + epsilon))
struct Adam : AdamAttributes {
  struct Scalars {
    double r, alpha, beta, epsilon, norm, keep;
  };
  Scalars At(double r, int64_t t) const {
    const double steps = static_cast<double>(t);
    const double corrected =
        t > 0 ? r * std::sqrt(1 - std::pow(beta, steps)) / (1 - std::pow(alpha, steps)) : r;
    return {corrected, alpha, beta, epsilon, norm, 1 - norm_post};
  }

  template <typename T>
  struct Update {
    explicit Update(const Scalars& s)
        : r(s.r),
          alpha(s.alpha),
          beta(s.beta),
          one_minus_alpha(1 - s.alpha),
          one_minus_beta(1 - s.beta),
          epsilon(s.epsilon),
          norm(s.norm),
          keep(s.keep) {}
    void operator()(Vec<T>& x, Vec<T> g, Vec<T>* state) const {
      g += norm * x;
      state[0] = alpha * state[0] + one_minus_alpha * g;
      state[1] = beta * state[1] + one_minus_beta * (g * g);
      x = keep * (x - r * state[0] / (Sqrt(state[1]) + epsilon));
    }
    double Bound(double x, double g, const double* state) const {
      const double gr = g + std::abs(norm) * x;
      const double moved = x + MomentsBound(*this, gr, state);
      return moved + std::abs(keep) * moved;
    }
    T r, alpha, beta, one_minus_alpha, one_minus_beta, epsilon, norm, keep;
  };
};

// X1 = X * (1 - R*weight_decay)
// V' = alpha*V + (1-alpha)*G;  H' = beta*H + (1-beta)*G^2
// c = sqrt(1 - beta^T);  X' = X1 - R*c / (1 - alpha^T) * V' / (sqrt(H') + epsilon + eps*c)
struct AdamW : AdamWAttributes {
  struct Scalars {
    double r, alpha, beta, epsilon, keep;
  };
  Scalars At(double r, int64_t t) const {
    const double steps = static_cast<double>(t);
    const double c = std::sqrt(1 - std::pow(beta, steps));
    return {r * c / (1 - std::pow(alpha, steps)), alpha, beta, epsilon + eps * c,
            1 - r * weight_decay};
  }

  template <typename T>
  struct Update {
    explicit Update(const Scalars& s)
        : r(s.r),
          alpha(s.alpha),
          beta(s.beta),
          one_minus_alpha(1 - s.alpha),
          one_minus_beta(1 - s.beta),
          epsilon(s.epsilon),
          keep(s.keep) {}
    void operator()(Vec<T>& x, Vec<T> g, Vec<T>* state) const {
      state[0] = alpha * state[0] + one_minus_alpha * g;
      state[1] = beta * state[1] + one_minus_beta * (g * g);
      x = keep * x - r * state[0] / (Sqrt(state[1]) + epsilon);
    }
    double Bound(double x, double g, const double* state) const {
      return x + std::abs(keep) * x + MomentsBound(*this, g, state);
    }
    T r, alpha, beta, one_minus_alpha, one_minus_beta, epsilon, keep;
  };
};

// One variable's elements: where they are and where the new ones go (null: not
// wanted). `state` and `new_state` have an entry per state of the rule.
template <typename T, int kStates>
struct UpdateRun {
  const T *x, *g;
  std::array<const T*, kStates> state;
  T* new_x;
  std::array<T*, kStates> new_state;
};

// Calls take(i, count, x, states) with the new values of elements [begin, end) of x, a
// vector at a time; g's begin is `g_begin`.
template <typename Rule, typename T, typename Take>
inline void ForUpdated(const typename Rule::Scalars& scalars,
                       const UpdateRun<T, Rule::kStates>& run, int64_t begin, int64_t end,
                       int64_t g_begin, const Take& take) {
  constexpr int S = Rule::kStates;
  const typename Rule::template Update<T> update(scalars);
  ForVecs<T>(end - begin, [&](int64_t offset, int count) {
    const int64_t i = begin + offset;
    Vec<T> x = Load(run.x + i, count);
    Vec<T> state[S + 1];
    for (int k = 0; k < S; ++k) state[k] = Load(run.state[k] + i, count);
    update(x, Load(run.g + g_begin + offset, count), state);
    take(i, count, x, state);
  });
}

// Writes the new values; returns their largest absolute values, of x and of each state.
template <typename Rule, typename T>
std::array<double, 1 + Rule::kStates> UpdateElements(const typename Rule::Scalars& scalars,
                                                     const UpdateRun<T, Rule::kStates>& run,
                                                     int64_t begin, int64_t end, int64_t g_begin) {
  constexpr int S = Rule::kStates;
  Vec<T> largest[1 + S] = {};
  ForUpdated<Rule, T>(scalars, run, begin, end, g_begin,
                      [&](int64_t i, int count, Vec<T> x, const Vec<T>* state) {
                        if (run.new_x != nullptr) Store(run.new_x + i, x, count);
                        largest[0] = Max(Keep<T>(Magnitude(x), count), largest[0]);
                        for (int k = 0; k < S; ++k) {
                          if (run.new_state[k] != nullptr)
                            Store(run.new_state[k] + i, state[k], count);
                          largest[1 + k] = Max(Keep<T>(Magnitude(state[k]), count), largest[1 + k]);
                        }
                      });
  std::array<double, 1 + S> magnitudes;
  for (int k = 0; k <= S; ++k) magnitudes[k] = HorizontalMax<T>(largest[k]);
  return magnitudes;
}

// Which of x and the states would not be finite.
template <typename Rule, typename T>
std::array<bool, 1 + Rule::kStates> WouldNotBeFinite(const typename Rule::Scalars& scalars,
                                                     const UpdateRun<T, Rule::kStates>& run,
                                                     int64_t begin, int64_t end, int64_t g_begin) {
  constexpr int S = Rule::kStates;
  IntVec<T> bad[1 + S] = {};
  ForUpdated<Rule, T>(scalars, run, begin, end, g_begin,
                      [&](int64_t, int count, Vec<T> x, const Vec<T>* state) {
                        bad[0] |= NotFinite<T>(Keep<T>(x, count));
                        for (int k = 0; k < S; ++k) {
                          bad[1 + k] |= NotFinite<T>(Keep<T>(state[k], count));
                        }
                      });
  std::array<bool, 1 + S> any;
  for (int k = 0; k <= S; ++k) any[k] = _mm256_movemask_epi8((__m256i)bad[k]) != 0;
  return any;
}

// R, and T where the rule has one.
template <typename Rule>
typename Rule::Scalars ScalarsOf(const Rule& rule, const KernelCall& call) {
  double rate = 0;
  const Tensor& r = *call.inputs[0];
  DispatchFloat(r.dtype(), [&]<typename T>() { rate = *r.data<T>(); });
  return rule.At(rate, Rule::kHasT ? *call.inputs[1]->template data<int64_t>() : 0);
}

// Where a kernel writes output i; null if it is not wanted.
template <typename T>
T* WantedOutput(const KernelCall& call, int i) {
  const bool wanted = i < static_cast<int>(call.outputs.size()) && call.outputs[i] != nullptr;
  return wanted ? call.outputs[i]->data<T>() : nullptr;
}

}  // namespace onward

#endif  // ONWARD_CORE_OPS_OPTIMIZER_OPTIMIZER_RULES_H_
