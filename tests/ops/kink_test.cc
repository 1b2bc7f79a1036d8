// SPDX-License-Identifier: Apache-2.0
// Literal expectations where a formula alone does not say what happens: at kinks, ties,
// halves, bounds and infinities. Rows of the operator table keep away from these.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "environment/environment.h"
#include "tests/ops/cases.h"
#include "tests/support/device_trial.h"
#include "tests/support/kernel_trial.h"
#include "tests/support/reference/array.h"
#include "tests/support/test_environment.h"

namespace onward::kink_test {

using reference::Array;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Values {
  Shape shape;
  std::vector<double> values;
  DType dtype = DType::kUndefined;  // of the row, where it is not given
};

Values Row(std::vector<double> values, DType dtype = DType::kUndefined) {
  return {{static_cast<int64_t>(values.size())}, std::move(values), dtype};
}

struct Literal {
  std::string name;  // "Clip_bounds": the operator, what is special
  std::vector<Values> inputs, outputs;
  std::vector<DType> types;
  Attributes attributes = {};
};

const std::vector<DType>& Floats() {
  static const auto* const types =
      new std::vector<DType>{DType::kFloat, DType::kDouble, DType::kFloat16, DType::kBFloat16};
  return *types;
}
const std::vector<DType>& Float8s() {
  static const auto* const types = new std::vector<DType>{
      DType::kFloat8E4M3FN, DType::kFloat8E4M3FNUZ, DType::kFloat8E5M2, DType::kFloat8E5M2FNUZ};
  return *types;
}
const std::vector<DType>& Signed() {
  static const auto* const types =
      new std::vector<DType>{DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64};
  return *types;
}
const std::vector<DType>& Numbers() {
  static const auto* const types = [] {
    auto* all = new std::vector<DType>(Floats());
    all->insert(all->end(), Signed().begin(), Signed().end());
    return all;
  }();
  return *types;
}

std::vector<Literal> Kinks() {
  return {
      {"Relu", {Row({-1, -0.0, 0, 1})}, {Row({0, 0, 0, 1})}, Numbers()},
      {"LeakyRelu", {Row({-2, 0, 2})}, {Row({-1, 0, 2})}, Floats(), {{"alpha", 0.5f}}},
      {"PRelu", {Row({-2, 0, 2}), Row({0.5})}, {Row({-1, 0, 2})}, Floats()},
      {"ThresholdedRelu", {Row({0.5, 1, 1.5})}, {Row({0, 0, 1.5})}, Floats()},
      {"Shrink", {Row({-0.75, -0.5, 0, 0.5, 0.75})}, {Row({-0.75, 0, 0, 0, 0.75})}, Floats()},
      {"HardSigmoid",
       {Row({-2, -1, 0, 1, 2})},
       {Row({0, 0, 0.5, 1, 1})},
       Floats(),
       {{"alpha", 0.5f}, {"beta", 0.5f}}},
      {"Elu", {Row({0})}, {Row({0})}, Floats()},
      {"Selu", {Row({0})}, {Row({0})}, Floats()},
      {"Celu", {Row({0})}, {Row({0})}, Floats()},
      {"Clip_bounds",
       {Row({-2, -1, 0, 1, 2}), {{}, {-1}}, {{}, {1}}},
       {Row({-1, -1, 0, 1, 1})},
       Numbers()},
      {"Clip_crossed", {Row({-2, 0, 3}), {{}, {2}}, {{}, {1}}}, {Row({1, 1, 1})}, Numbers()},
      {"Abs", {Row({-2, -0.0, 0, 2})}, {Row({2, 0, 0, 2})}, Numbers()},
      {"Sign", {Row({-2, -0.0, 0, 2})}, {Row({-1, 0, 0, 1})}, Numbers()},
      {"Round",
       {Row({-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3})},
       {Row({-2, -2, 0, 0, 2, 2, 3})},
       Floats()},
      {"Floor", {Row({-1, -0.5, 0.5, 1})}, {Row({-1, -1, 0, 1})}, Floats()},
      {"Ceil", {Row({-1, -0.5, 0.5, 1})}, {Row({-1, 0, 1, 1})}, Floats()},
      {"Max", {Row({1, -1, 2}), Row({1, 1, -2})}, {Row({1, 1, 2})}, Numbers()},
      {"Min", {Row({1, -1, 2}), Row({1, 1, -2})}, {Row({1, -1, -2})}, Numbers()},
  };
}

std::vector<Literal> Whole() {
  const auto narrow = [](DType type) { return std::vector<DType>{type}; };
  return {
      {"Mod", {Row({-7, 7, -7, 7}), Row({3, -3, -3, 3})}, {Row({2, -2, -1, 1})}, Signed()},
      {"Mod_like_c",
       {Row({-7, 7, -7, 7}), Row({3, -3, -3, 3})},
       {Row({-1, 1, -1, 1})},
       Numbers(),
       {{"fmod", 1}}},
      {"Div", {Row({-7, 7, -7, 7}), Row({2, -2, -2, 2})}, {Row({-3, -3, 3, 3})}, Signed()},
      {"Div_by_zero", {Row({1, -1, 0}), Row({0, 0, 0})}, {Row({kInf, -kInf, kNaN})}, Floats()},
      {"Add_wraps", {Row({127, -128}), Row({1, -1})}, {Row({-128, 127})}, narrow(DType::kInt8)},
      {"Sub_wraps", {Row({0, 1}), Row({1, 3})}, {Row({255, 254})}, narrow(DType::kUint8)},
      {"Mul_wraps", {Row({100, -100}), Row({3, 3})}, {Row({44, -44})}, narrow(DType::kInt8)},
      {"Neg_wraps", {Row({-128, 127})}, {Row({-128, -127})}, narrow(DType::kInt8)},
      {"Pow_whole",
       {Row({0, -2, 3, 1}), Row({0, 3, 4, 40})},
       {Row({1, -8, 81, 1})},
       {DType::kInt32, DType::kInt64, DType::kFloat, DType::kDouble}},
      {"Pow_of_zero", {Row({0, 0, 2}), Row({0, 2, -1})}, {Row({1, 0, 0.5})}, Floats()},
      {"BitShift_out",
       {Row({255, 3}), Row({1, 7})},
       {Row({254, 128})},
       narrow(DType::kUint8),
       {{"direction", "LEFT"}}},
  };
}

std::vector<Literal> Ties() {
  using List = std::vector<int64_t>;
  const auto index = DType::kInt64;
  const Values plane = {{1, 1, 2, 3}, {4, 4, 2, 1, 4, 4}};
  return {
      {"ArgMax", {Row({1, 3, 3, 2})}, {Row({1}, index)}, Numbers()},
      {"ArgMax_last",
       {Row({1, 3, 3, 2})},
       {Row({2}, index)},
       Numbers(),
       {{"select_last_index", 1}}},
      {"ArgMin", {Row({3, 1, 1, 2})}, {Row({1}, index)}, Numbers()},
      {"Hardmax", {Row({1, 3, 3})}, {Row({0, 1, 0})}, Floats()},
      {"TopK", {Row({2, 5, 5, 1}), Row({2}, index)}, {Row({5, 5}), Row({1, 2}, index)}, Numbers()},
      {"TopK_smallest",
       {Row({2, 1, 2, 1}), Row({3}, index)},
       {Row({1, 1, 2}), Row({1, 3, 0}, index)},
       Numbers(),
       {{"largest", 0}}},
      {"MaxPool",
       {plane},
       {{{1, 1, 1, 2}, {4, 4}}, {{1, 1, 1, 2}, {0, 1}, index}},
       Floats(),
       {{"kernel_shape", List{2, 2}}}},
      {"Equal", {Row({0, 1}), Row({-0.0, 2})}, {Row({1, 0}, DType::kBool)}, Floats()},
      {"NonZero", {Row({-0.0, 0, 2})}, {{{1, 1}, {2}, index}}, Floats()},
      {"CumSum_exclusive",
       {Row({1, 2, 3}), {{}, {0}, index}},
       {Row({0, 1, 3})},
       {DType::kFloat, DType::kInt32},
       {{"exclusive", 1}}},
      {"ReduceMean_whole",
       {Row({1, 2, 2}), Row({0}, index)},
       {Row({1})},
       {DType::kInt32, DType::kInt64}},
  };
}

std::vector<Literal> Ends() {
  const auto flag = DType::kBool;
  const auto to = [](DType type) { return Attributes{{"to", static_cast<int64_t>(type)}}; };
  const Values odd = Row({-kInf, -1, kNaN, kInf});
  return {
      {"IsInf", {odd}, {Row({1, 0, 0, 1}, flag)}, Floats()},
      {"IsInf_up", {odd}, {Row({0, 0, 0, 1}, flag)}, Floats(), {{"detect_negative", 0}}},
      {"IsInf_down", {odd}, {Row({1, 0, 0, 0}, flag)}, Floats(), {{"detect_positive", 0}}},
      {"IsNaN", {odd}, {Row({0, 0, 1, 0}, flag)}, Floats()},
      {"IsNaN_float8", {Row({-1, 0, kNaN, 0.5})}, {Row({0, 0, 1, 0}, flag)}, Float8s()},
      {"IsInf_float8e5m2", {odd}, {Row({1, 0, 0, 1}, flag)}, {DType::kFloat8E5M2}},
      {"IsInf_float8e5m2_up",
       {odd},
       {Row({0, 0, 0, 1}, flag)},
       {DType::kFloat8E5M2},
       {{"detect_negative", 0}}},
      {"IsInf_float8", {Row({-1, 0, kNaN, 0.5})}, {Row({0, 0, 0, 0}, flag)}, Float8s()},
      {"Reciprocal", {Row({0, -0.0, kInf, 2})}, {Row({kInf, -kInf, 0, 0.5})}, Floats()},
      {"Sqrt", {Row({0, 4, kInf, -1})}, {Row({0, 2, kInf, kNaN})}, Floats()},
      {"Exp", {Row({-kInf, 0, kInf})}, {Row({0, 1, kInf})}, Floats()},
      {"Log", {Row({0, 1, kInf, -1})}, {Row({-kInf, 0, kInf, kNaN})}, Floats()},
      {"Sigmoid", {Row({-kInf, -1000, 0, 1000, kInf})}, {Row({0, 0, 0.5, 1, 1})}, Floats()},
      {"Tanh", {Row({-kInf, -1000, 0, 1000, kInf})}, {Row({-1, -1, 0, 1, 1})}, Floats()},
      {"Erf", {Row({-kInf, -1000, 0, 1000, kInf})}, {Row({-1, -1, 0, 1, 1})}, Floats()},
      {"Softplus", {Row({-kInf, -1000, 1000, kInf})}, {Row({0, 0, 1000, kInf})}, Floats()},
      {"Softsign", {Row({0, 1, -1})}, {Row({0, 0.5, -0.5})}, Floats()},
      {"Elu_low", {Row({-kInf, -200})}, {Row({-1, -1})}, Floats()},
      {"Gelu", {Row({0, 200, kInf})}, {Row({0, 200, kInf})}, Floats()},
      {"Softmax", {Row({0, -kInf, 0, -1000})}, {Row({0.5, 0, 0.5, 0})}, Floats()},
      {"Softmax_large", {Row({200, 200})}, {Row({0.5, 0.5})}, Floats()},
      {"ReduceLogSumExp_large",
       {Row({200, -200}), Row({0}, DType::kInt64)},
       {Row({200})},
       Floats()},
      {"ReduceL1_lowest", {Row({-0x1p63})}, {Row({-0x1p63})}, {DType::kInt64}},  // it wraps
      {"ReduceMax", {Row({-kInf, -kInf}), Row({0}, DType::kInt64)}, {Row({-kInf})}, Floats()},
      {"Cast_cut",
       {Row({-1.5, -0.5, 0.5, 1.5})},
       {Row({-1, 0, 0, 1}, DType::kInt32)},
       Floats(),
       to(DType::kInt32)},
      {"Cast_flags",
       {Row({0, -0.0, 0.5, kNaN})},
       {Row({0, 0, 1, 1}, flag)},
       Floats(),
       to(DType::kBool)},
      {"Cast_half_ties",
       {Row({2049, 2051, 65519, 65520})},
       {Row({2048, 2052, 65504, kInf}, DType::kFloat16)},
       {DType::kFloat, DType::kDouble},
       to(DType::kFloat16)},
      {"Cast_bfloat_ties",
       {Row({257, 259})},
       {Row({256, 260}, DType::kBFloat16)},
       {DType::kFloat, DType::kDouble},
       to(DType::kBFloat16)},
      {"Cast_double_rounding",
       {Row({1 + 0x1p-11 + 0x1p-40})},
       {Row({1 + 0x1p-10}, DType::kFloat16)},
       {DType::kDouble},
       to(DType::kFloat16)},
      {"Cast_int64_edges",
       {Row({2147483520, 2147483648, -2147483648, -2147483904, 0x1p40, -0x1p62, 2.9, -2.9, kNaN})},
       {Row({2147483520, 2147483648, -2147483648, -2147483904, 0x1p40, -0x1p62, 2, -2, 0},
            DType::kInt64)},
       {DType::kFloat, DType::kDouble},
       to(DType::kInt64)},
      {"Cast_wide",
       {Row({9007199254740992.0, -9007199254740992.0})},
       {Row({9007199254740992.0, -9007199254740992.0}, DType::kDouble)},
       {DType::kInt64},
       to(DType::kDouble)},
  };
}

Tensor TensorOf(const Values& v, DType row) {
  Array a(v.dtype == DType::kUndefined ? row : v.dtype, v.shape);
  std::copy(v.values.begin(), v.values.end(), a.values.begin());
  return reference::ToTensor(a);
}

KernelInputs CallOf(const Literal& literal, DType dtype) {
  KernelInputs call;
  call.node.op_type = literal.name.substr(0, literal.name.find('_'));
  call.node.attributes = literal.attributes;
  for (size_t i = 0; i < literal.inputs.size(); ++i) {
    call.node.inputs.push_back(absl::StrCat("x", i));
    call.values.push_back(TensorOf(literal.inputs[i], dtype));
    call.constant.push_back(i > 0);
  }
  for (const Values& output : literal.outputs) {
    call.node.outputs.push_back(absl::StrCat("y", call.outputs.size()));
    const Tensor t = TensorOf(output, dtype);
    call.outputs.push_back({t.dtype(), t.shape(), nullptr, nullptr});
    if (call.node.op_type == "NonZero") call.outputs.back().shape.reset();
  }
  return call;
}

void ExpectLiteral(const Tensor& actual, const Tensor& expected, const std::string& where) {
  ASSERT_EQ(actual.shape(), expected.shape()) << where;
  const Array a = reference::FromTensor(actual), e = reference::FromTensor(expected);
  for (int64_t i = 0; i < e.size(); ++i) {
    const bool same =
        std::isnan(e.values[i]) ? std::isnan(a.values[i]) : a.values[i] == e.values[i];
    EXPECT_TRUE(same) << where << ", element " << i << " is " << static_cast<double>(a.values[i])
                      << ", expected " << static_cast<double>(e.values[i]);
  }
}

// Whether the trial is one, its results compared.
template <class Trial>
bool CheckTrial(Trial trial, const Literal& literal, DType dtype, const std::string& where) {
  if (absl::IsUnimplemented(trial.status())) return false;
  const auto results = trial.status().ok() ? trial.Run() : trial.status();
  EXPECT_TRUE(results.ok()) << where << ": " << results.status();
  for (size_t i = 0; results.ok() && i < results->size(); ++i) {
    ExpectLiteral((*results)[i], TensorOf(literal.outputs[i], dtype), where);
  }
  return true;
}

// Every kernel of the CPU, which has one; or those of the device that the program runs on, which
// may have none.
void CheckLiterals(const std::vector<Literal>& literals) {
  const Device& device =
      OnDevice() ? *TestEnvironment().accelerators()[0] : DefaultEnvironment().cpu();
  const auto stream = OnDevice() ? device.MakeStream().value() : nullptr;
  int compared = 0;
  for (const Literal& literal : literals) {
    for (const DType dtype : literal.types) {
      const KernelInputs call = CallOf(literal, dtype);
      const auto* entries = device.kernels().Find(call.node.op_type, "");
      bool any = false;
      for (size_t k = 0; entries != nullptr && k < entries->size(); ++k) {
        const KernelTable::Entry& entry = (*entries)[k];
        const std::string where =
            absl::StrCat(literal.name, " in ", DTypeName(dtype), ", kernel '", entry.provider, "'");
        any |= OnDevice()
                   ? CheckTrial(DeviceTrial(device, *stream, entry, call), literal, dtype, where)
                   : CheckTrial(KernelTrial(entry, call, Placings()[0]), literal, dtype, where);
      }
      compared += any;
      EXPECT_TRUE(any || OnDevice()) << literal.name << ": no kernel for " << DTypeName(dtype);
    }
  }
  EXPECT_GT(compared, 0);
}

TEST(Literals, Kinks) { CheckLiterals(Kinks()); }
TEST(Literals, WholeNumbers) { CheckLiterals(Whole()); }
TEST(Literals, Ties) { CheckLiterals(Ties()); }
TEST(Literals, Ends) { CheckLiterals(Ends()); }

}  // namespace onward::kink_test
