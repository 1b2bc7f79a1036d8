// SPDX-License-Identifier: Apache-2.0
// Fourier transforms and what is made of them.
#include "core/ops/signal/signal.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/ops/cpu/register.h"
#include "core/ops/signal/fft.h"

namespace onward {

absl::StatusOr<int64_t> LengthOf(const Node& node, const Tensor& t, std::string_view what) {
  ONWARD_ASSIGN_OR_RETURN(const int64_t length, IntOf(node, t, what));
  if (length >= 1 && length <= kLongestTransform) return length;
  return NodeError(
      node, absl::StrCat(std::string(what), " is ", length, ", expected 1 to ", kLongestTransform));
}

void RegisterSignalKernels(KernelTable& table) {
  RegisterDftKernels(table);
  RegisterStftKernels(table);
  RegisterMelKernels(table);
}

}  // namespace onward
