// SPDX-License-Identifier: Apache-2.0
// Floats of at most 8 bits and integers of at most 4, as lists of all their numbers.
#ifndef ONWARD_TESTS_SUPPORT_REFERENCE_SMALL_H_
#define ONWARD_TESTS_SUPPORT_REFERENCE_SMALL_H_

#include "tests/support/reference/array.h"

namespace onward::reference {

bool IsSmallType(DType dtype);
// The number that the element's bits stand for.
Number NumberOf(DType dtype, int bits);
// The nearest number of the type, of two the one with even bits; beyond the largest it, or
// with saturate off infinity or NaN, where the type has one.
Number ToSmall(DType dtype, Number value, bool saturate = true);

void ReadSmall(const Tensor& t, std::vector<Number>& values);
void WriteSmall(const std::vector<Number>& values, Tensor& t);

}  // namespace onward::reference

#endif  // ONWARD_TESTS_SUPPORT_REFERENCE_SMALL_H_
