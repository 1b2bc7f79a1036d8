// SPDX-License-Identifier: Apache-2.0
// The rows of the operator tables as calls of single kernels, with what they must give: in every
// element type, with inputs known beforehand and not, and the nodes of a row's gradient.
#ifndef ONWARD_TESTS_SUPPORT_KERNEL_ROWS_H_
#define ONWARD_TESTS_SUPPORT_KERNEL_ROWS_H_

#include <functional>
#include <string>

#include "tests/support/kernel_trial.h"
#include "tests/support/op_case.h"
#include "tests/support/reference/array.h"

namespace onward {

using KernelCheck = std::function<void(const KernelInputs& call, const reference::Arrays& expected,
                                       const std::string& what)>;

// A row in one type: with its constants known, with all weights known, with nothing known.
// `indices`: the type of integers that are fed.
void CheckRow(const OpCase& c, DType dtype, DType indices, const KernelCheck& check);
// In all types that it may have.
void CheckRow(const OpCase& c, const KernelCheck& check);
// Nodes of Onward's own in the row's gradient, on the numbers they get there.
void CheckGradient(const OpCase& c, DType dtype, const KernelCheck& check);
// In all floating types.
void CheckGradient(const OpCase& c, const KernelCheck& check);

// Empty, or what is wrong. NaN is right where the reference is NaN, and nowhere else.
std::string Difference(const Tensor& tensor, const reference::Array& expected);

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_KERNEL_ROWS_H_
