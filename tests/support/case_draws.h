// SPDX-License-Identifier: Apache-2.0
// The numbers of a row, drawn from its name.
#ifndef ONWARD_TESTS_SUPPORT_CASE_DRAWS_H_
#define ONWARD_TESTS_SUPPORT_CASE_DRAWS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "tests/support/op_case.h"

namespace onward {

// SplitMix64: the same numbers everywhere.
class Draws {
 public:
  explicit Draws(const std::string& name) : state_(0xcbf29ce484222325) {
    for (const char c : name) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  uint64_t Bits() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  double Unit() { return static_cast<double>(Bits() >> 11) * 0x1p-53; }
  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(Bits() % static_cast<uint64_t>(bound));
  }

 private:
  uint64_t state_;
};

// A tensor of doubles rounded to another type.
Tensor Converted(const Tensor& doubles, DType dtype);
Tensor Doubles(const Shape& shape, const std::vector<double>& values);
Tensor Integers(const Shape& shape, const std::vector<double>& values, DType dtype = DType::kInt64);

// What is fed: real numbers as doubles, integers, flags.
Tensor DrawArg(const Arg& arg, Draws& draws);

// Any input of a row, constants too, with real numbers in the given type, which need not be a
// floating one: integers are whole, small and inside of three times the row's range. Undefined
// for an omitted one, none where the type cannot hold what the row asks for.
std::optional<Tensor> DrawArgAs(const Arg& arg, DType dtype, Draws& draws);

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_CASE_DRAWS_H_
