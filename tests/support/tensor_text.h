// SPDX-License-Identifier: Apache-2.0
// Tensors in the text files of tests/golden: "float 2x3 1 2 3 4 5 6", "int64 scalar 7".
#ifndef ONWARD_TESTS_SUPPORT_TENSOR_TEXT_H_
#define ONWARD_TESTS_SUPPORT_TENSOR_TEXT_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/tensor/tensor.h"

namespace onward {

using Words = std::vector<std::string>;

double NumberIn(const std::string& word);
// TYPE SHAPE VALUES..
Tensor TensorIn(absl::Span<const std::string> words);

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_TENSOR_TEXT_H_
