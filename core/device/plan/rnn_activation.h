// SPDX-License-Identifier: Apache-2.0
// The activations of RNN, GRU and LSTM by number, for host and device code alike.
#ifndef ONWARD_CORE_DEVICE_PLAN_RNN_ACTIVATION_H_
#define ONWARD_CORE_DEVICE_PLAN_RNN_ACTIVATION_H_

namespace onward {

enum class RnnActivationKind {
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

}  // namespace onward

#endif  // ONWARD_CORE_DEVICE_PLAN_RNN_ACTIVATION_H_
