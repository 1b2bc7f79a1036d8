// SPDX-License-Identifier: Apache-2.0
// .npz files, as numpy.savez writes them.
#ifndef ONWARD_TESTS_SUPPORT_NPZ_H_
#define ONWARD_TESTS_SUPPORT_NPZ_H_

#include <string>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace onward {

void WriteNpz(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& arrays);

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_NPZ_H_
