// SPDX-License-Identifier: Apache-2.0
// The activations of RNN, GRU and LSTM and their slopes, over arrays.
#ifndef ONWARD_CORE_OPS_RNN_RNN_ACTIVATION_H_
#define ONWARD_CORE_OPS_RNN_RNN_ACTIVATION_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace onward {

struct RnnActivation {
  enum class Kind {
    kRelu,
    kTanh,
    kSigmoid,
    kAffine,
    kLeakyRelu,
    kThresholdedRelu,
    kScaledTanh,
    kHardSigmoid,
    kElu,
    kSoftsign,
    kSoftplus,
  };
  Kind kind = Kind::kTanh;
  float alpha = 0, beta = 0;
  bool has_alpha = false, has_beta = false;  // which of them the formula reads

  // By the name in the attribute `activations` (letter case is ignored), with
  // the default alpha and beta.
  static std::optional<RnnActivation> Named(std::string_view name);
};

// y = f(x limited to [-clip, clip]); y may be x.
template <typename T>
void Activate(const RnnActivation& f, T clip, const T* x, T* y, int64_t n);

// d becomes d * dy/dx, given x and the y that Activate made of it.
template <typename T>
void ActivateGrad(const RnnActivation& f, T clip, const T* x, const T* y, T* d, int64_t n);

}  // namespace onward

#endif  // ONWARD_CORE_OPS_RNN_RNN_ACTIVATION_H_
