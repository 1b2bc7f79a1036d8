// SPDX-License-Identifier: Apache-2.0
#include "tests/support/op_case.h"

#include <utility>

namespace onward {
namespace {

Arg MakeArg(Arg::Kind kind, Shape shape, std::vector<double> values) {
  return {.kind = kind, .shape = std::move(shape), .kinks = {}, .values = std::move(values)};
}

std::vector<double> AsDoubles(const std::vector<int64_t>& values) {
  return {values.begin(), values.end()};
}

}  // namespace

Arg Real(Shape shape, double low, double high, std::vector<double> kinks) {
  return {.kind = Arg::Kind::kReal,
          .shape = std::move(shape),
          .low = low,
          .high = high,
          .kinks = std::move(kinks),
          .values = {}};
}
Arg Positive(Shape shape) { return Real(std::move(shape), 0.5, 2.5); }
Arg Below(Shape shape, int64_t bound, DType dtype) {
  Arg arg = MakeArg(Arg::Kind::kIntegers, std::move(shape), {});
  arg.integers = dtype;
  arg.high = static_cast<double>(bound);
  return arg;
}
Arg Fed(Shape shape, std::vector<int64_t> values, DType dtype) {
  Arg arg = MakeArg(Arg::Kind::kIntegers, std::move(shape), AsDoubles(values));
  arg.integers = dtype;
  return arg;
}
Arg Flags(Shape shape) { return MakeArg(Arg::Kind::kFlags, std::move(shape), {}); }
Arg Ints(std::vector<int64_t> values) {
  const auto n = static_cast<int64_t>(values.size());
  return Ints({n}, std::move(values));
}
Arg Ints(Shape shape, std::vector<int64_t> values) {
  return MakeArg(Arg::Kind::kConstant, std::move(shape), AsDoubles(values));
}
Arg Int(int64_t value) { return Ints(Shape{}, {value}); }
Arg FloatList(std::vector<double> values) {
  const auto n = static_cast<int64_t>(values.size());
  Arg arg = MakeArg(Arg::Kind::kConstant, {n}, std::move(values));
  arg.integers = DType::kFloat;
  return arg;
}
Arg ConstantNumbers(Shape shape, std::vector<double> values) {
  return MakeArg(Arg::Kind::kConstantReal, std::move(shape), std::move(values));
}
Arg Number(double value) { return MakeArg(Arg::Kind::kConstantReal, {}, {value}); }
Arg True() { return MakeArg(Arg::Kind::kTrue, {}, {}); }
Arg Omitted() { return {}; }

OpCase OpCase::Outputs(int count, std::vector<int> used_ones) {
  outputs = count;
  used = std::move(used_ones);
  return *this;
}
OpCase OpCase::By(std::vector<int> inputs) {
  by = std::move(inputs);
  return *this;
}
OpCase OpCase::Unknown(std::vector<int> inputs) {
  unknown = std::move(inputs);
  return *this;
}
OpCase OpCase::DataDependent() {
  data_dependent = true;
  return *this;
}
OpCase OpCase::Own() {
  domain = std::string(kOnwardDomain);
  return *this;
}

OpCase Case(std::string name, std::vector<Arg> args, Attributes attributes) {
  OpCase c;
  c.op = name.substr(0, name.find('_'));
  c.name = std::move(name);
  c.args = std::move(args);
  c.attributes = std::move(attributes);
  return c;
}

void PrintTo(const OpCase& c, std::ostream* out) { *out << c.name; }

}  // namespace onward
