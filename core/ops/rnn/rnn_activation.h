// SPDX-License-Identifier: Apache-2.0
// The activations of RNN, GRU and LSTM and their slopes, over arrays.
#ifndef ONWARD_CORE_OPS_RNN_RNN_ACTIVATION_H_
#define ONWARD_CORE_OPS_RNN_RNN_ACTIVATION_H_

#include <cstdint>

#include "core/device/plan/rnn.h"

namespace onward {

// y = f(x limited to [-clip, clip]); y may be x.
template <typename T>
void Activate(const RnnActivation& f, T clip, const T* x, T* y, int64_t n);

// d becomes d * dy/dx, given x and the y that Activate made of it.
template <typename T>
void ActivateGrad(const RnnActivation& f, T clip, const T* x, const T* y, T* d, int64_t n);

}  // namespace onward

#endif  // ONWARD_CORE_OPS_RNN_RNN_ACTIVATION_H_
