// SPDX-License-Identifier: Apache-2.0
// Calls that are larger than the rows of the tables: several blocks, loops over the grid, squares
// of transposes, accesses that are wider than an element.
#ifndef ONWARD_TESTS_CUDA_LARGE_CALLS_H_
#define ONWARD_TESTS_CUDA_LARGE_CALLS_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/case_draws.h"
#include "tests/support/kernel_rows.h"
#include "tests/support/reference/evaluate.h"

namespace onward {

// An operator on tensors of one type.
struct LargeCall {
  std::string op;
  std::map<std::string, Attribute> attributes;
  std::vector<Shape> shapes;
  std::vector<Tensor> constants = {};  // the inputs after those
};

inline Tensor DrawnInts(const std::string& name, const Shape& shape, DType dtype) {
  Draws draws(name);
  std::vector<double> values;
  for (int64_t i = 0; i < shape.elements(); ++i) {
    values.push_back(static_cast<double>(draws.Below(10)));
  }
  return IsFloating(dtype) ? Converted(Doubles(shape, values), dtype)
                           : Integers(shape, values, dtype);
}

inline void CheckLarge(const LargeCall& c, DType dtype, const KernelCheck& check) {
  KernelInputs call{};
  call.node.op_type = c.op;
  call.node.attributes = {c.attributes.begin(), c.attributes.end()};
  call.node.outputs = {"y"};
  for (const Shape& shape : c.shapes) {
    call.values.push_back(DrawnInts(absl::StrCat(c.op, call.values.size()), shape, dtype));
    call.constant.push_back(false);
  }
  for (const Tensor& constant : c.constants) {
    call.values.push_back(constant);
    call.constant.push_back(true);
  }
  reference::Arrays in;
  for (const Tensor& t : call.values) {
    call.node.inputs.push_back(absl::StrCat("x", in.size()));
    in.push_back(reference::FromTensor(t));
  }
  const reference::Arrays expected = reference::Evaluate(call.node, in);
  call.outputs = {{expected[0].dtype, expected[0].shape, nullptr, nullptr}};
  check(call, expected, absl::StrCat(c.op, " in ", DTypeName(dtype)));
}

inline std::vector<LargeCall> LargeCalls() {
  const auto perm = [](std::vector<int64_t> axes) {
    return std::map<std::string, Attribute>{{"perm", Attribute(std::move(axes))}};
  };
  const auto ints = [](std::vector<double> values) {
    return Integers(Shape{static_cast<int64_t>(values.size())}, values);
  };
  return {
      // Squares of 32 by 32, whole and cut off.
      {"Transpose", perm({1, 0}), {Shape{70, 45}}},
      {"Transpose", perm({0, 2, 1}), {Shape{3, 33, 64}}},
      {"Transpose", perm({0, 2, 3, 1}), {Shape{2, 20, 3, 24}}},
      {"Transpose", perm({2, 1, 0}), {Shape{18, 4, 17}}},
      // Rows that are moved in pieces of 16 bytes and less.
      {"Slice", {}, {Shape{6, 9, 32}}, {ints({1, 2}), ints({5, 9}), ints({0, 1})}},
      {"Slice", {}, {Shape{6, 64}}, {ints({3}), ints({35}), ints({1})}},
      {"Tile", {}, {Shape{5, 16}}, {ints({3, 2})}},
      {"Concat", {{"axis", Attribute(int64_t{1})}}, {Shape{9, 48}, Shape{9, 16}, Shape{9, 5}}},
      {"Pad", {}, {Shape{40, 50}}, {ints({1, 2, 3, 4})}},
  };
}

// More elements than threads of a grid.
inline std::vector<LargeCall> HugeCases() {
  const int64_t n = (int64_t{1} << 20) + 77;
  return {
      {"Transpose", {{"perm", Attribute(std::vector<int64_t>{1, 0})}}, {Shape{1056, 1100}}},
      {"Add", {}, {Shape{n}, Shape{1}}},
      {"Mul", {}, {Shape{n / 7, 7}, Shape{7}}},
  };
}

}  // namespace onward

#endif  // ONWARD_TESTS_CUDA_LARGE_CALLS_H_
