// SPDX-License-Identifier: Apache-2.0
#include "tests/support/tensor_text.h"

#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "tests/support/case_draws.h"

namespace onward {
namespace {

DType TypeNamed(const std::string& name) {
  for (const DType dtype :
       {DType::kFloat, DType::kFloat16, DType::kUint8, DType::kInt8, DType::kInt32, DType::kInt64,
        DType::kBool, DType::kInt4, DType::kUint4}) {
    if (name == DTypeName(dtype)) return dtype;
  }
  ADD_FAILURE() << name;
  return DType::kFloat;
}

}  // namespace

double NumberIn(const std::string& word) {
  double value = NAN;
  EXPECT_TRUE(absl::SimpleAtod(word, &value)) << word;
  return value;
}

Tensor TensorIn(absl::Span<const std::string> words) {
  Shape shape;
  if (words[1] != "scalar") {
    for (absl::string_view dim : absl::StrSplit(words[1], 'x')) {
      shape.push_back(static_cast<int64_t>(NumberIn(std::string(dim))));
    }
  }
  std::vector<double> values;
  for (const std::string& word : words.subspan(2)) values.push_back(NumberIn(word));
  const DType dtype = TypeNamed(words[0]);
  return IsFloating(dtype) ? Converted(Doubles(shape, values), dtype)
                           : Integers(shape, values, dtype);
}

}  // namespace onward
