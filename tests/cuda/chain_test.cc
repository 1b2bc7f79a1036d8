// SPDX-License-Identifier: Apache-2.0
// Chains of element-wise operators in one launch, against the same operators one by one.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "tests/cuda/emulated.h"
#include "tests/support/case_draws.h"
#include "tests/support/kernel_trial.h"

namespace onward::chain_test {

// A step of a chain: operands as in ChainStep.
struct Link {
  std::string op;
  std::vector<int> operands;
  DType dtype;
  bool leaves = false;
  std::map<std::string, Attribute> attributes = {};
  std::string domain = "";
};

struct ChainCase {
  std::string name;
  Shape shape;
  std::vector<Tensor> inputs;
  std::vector<Link> links;
};

struct Made {
  std::vector<ChainStep> steps;
  std::vector<Tensor> expected;  // of what leaves, on the host
};

absl::StatusOr<Kernel> MakeLink(const Link& link, const std::vector<Tensor>& operands,
                                const Shape& shape) {
  Node node;
  node.op_type = link.op;
  node.domain = link.domain;
  node.attributes = {link.attributes.begin(), link.attributes.end()};
  node.outputs = {"y"};
  std::vector<ValueSpec> in;
  for (const Tensor& t : operands) {
    node.inputs.push_back(absl::StrCat("x", in.size()));
    in.push_back({t.dtype(), t.shape(), nullptr, nullptr});
  }
  const std::vector<ValueSpec> out = {{link.dtype, shape, nullptr, nullptr}};
  const auto* entries = Emulated().kernels().Find(link.op, link.domain);
  if (entries == nullptr) return absl::NotFoundError(link.op);
  return entries->front().factory({node, in, out, TrialOpsets()});
}

// Runs the links one after another.
absl::StatusOr<Made> RunLinks(const ChainCase& c) {
  Stream& stream = EmulatedStream();
  Made made;
  std::vector<Tensor> inputs, results;
  for (const Tensor& t : c.inputs) {
    ONWARD_ASSIGN_OR_RETURN(Tensor on_device, ToDevice(Emulated(), stream, t));
    inputs.push_back(on_device);
  }
  for (const Link& link : c.links) {
    std::vector<Tensor> operands;
    std::vector<const Tensor*> pointers;
    for (int from : link.operands) operands.push_back(from < 0 ? results[~from] : inputs[from]);
    for (const Tensor& t : operands) pointers.push_back(&t);
    ONWARD_ASSIGN_OR_RETURN(const Kernel kernel, MakeLink(link, operands, c.shape));
    ONWARD_ASSIGN_OR_RETURN(Tensor result, NewOnDevice(Emulated(), link.dtype, c.shape));
    Tensor* out = &result;
    KernelCall call{pointers, {&out, 1}, nullptr, {}};
    call.stream = stream.native();
    ONWARD_RETURN_IF_ERROR(kernel.run(call));
    results.push_back(result);
    if (kernel.pointwise == nullptr) return absl::InternalError("not element-wise");
    ChainStep step{kernel.pointwise, link.operands, link.dtype, -1};
    if (link.leaves) {
      step.output = static_cast<int>(made.expected.size());
      ONWARD_ASSIGN_OR_RETURN(Tensor host, FromDevice(stream, result));
      made.expected.push_back(host);
    }
    made.steps.push_back(step);
  }
  return made;
}

// The chain, its outputs in new memory or `over` an input.
absl::StatusOr<std::vector<Tensor>> RunChain(const ChainCase& c, const Kernel& kernel,
                                             const std::vector<Tensor>& like,
                                             std::pair<int, int> over) {
  Stream& stream = EmulatedStream();
  std::vector<Tensor> inputs, outputs;
  for (const Tensor& t : c.inputs) {
    ONWARD_ASSIGN_OR_RETURN(Tensor on_device, ToDevice(Emulated(), stream, t));
    inputs.push_back(on_device);
  }
  for (const Tensor& t : like) {
    ONWARD_ASSIGN_OR_RETURN(Tensor fresh, NewOnDevice(Emulated(), t.dtype(), t.shape()));
    const bool taken = static_cast<int>(outputs.size()) == over.first;
    outputs.push_back(taken ? inputs[over.second] : fresh);
  }
  std::vector<const Tensor*> in;
  std::vector<Tensor*> out;
  for (const Tensor& t : inputs) in.push_back(&t);
  for (Tensor& t : outputs) out.push_back(&t);
  KernelCall call{in, out, nullptr, {}};
  call.stream = stream.native();
  ONWARD_RETURN_IF_ERROR(kernel.run(call));
  std::vector<Tensor> results;
  for (const Tensor& t : outputs) {
    ONWARD_ASSIGN_OR_RETURN(Tensor host, FromDevice(stream, t));
    results.push_back(host);
  }
  return results;
}

void CheckChain(const ChainCase& c) {
  const auto made = RunLinks(c);
  ASSERT_TRUE(made.ok()) << c.name << ": " << made.status();
  std::vector<ValueSpec> specs;
  for (const Tensor& t : c.inputs) specs.push_back({t.dtype(), t.shape(), nullptr, nullptr});
  const auto kernel = Emulated().MakeChain(made->steps, specs, c.shape, nullptr);
  ASSERT_TRUE(kernel.ok()) << c.name << ": " << kernel.status();
  std::vector<std::pair<int, int>> ways = kernel->in_place;
  ways.emplace_back(-1, -1);
  for (const auto& way : ways) {
    const auto results = RunChain(c, *kernel, made->expected, way);
    ASSERT_TRUE(results.ok()) << c.name << ": " << results.status();
    for (size_t i = 0; i < results->size(); ++i) {
      EXPECT_TRUE(Identical((*results)[i], made->expected[i]))
          << c.name << ", output " << i << ", output " << way.first << " over input " << way.second;
    }
  }
}

Tensor Drawn(const std::string& name, const Shape& shape, DType dtype) {
  Draws draws(name);
  std::vector<double> values;
  for (int64_t i = 0; i < shape.elements(); ++i) values.push_back(4 * draws.Unit() - 2);
  return Converted(Doubles(shape, values), dtype);
}

class CudaChain : public testing::TestWithParam<DType> {};

TEST_P(CudaChain, BroadcastsAndRounds) {
  const DType t = GetParam();
  const Shape shape{3, 4, 5};
  CheckChain(
      {"bias, activation, residual",
       shape,
       {Drawn("a", shape, t), Drawn("b", {5}, t), Drawn("c", {4, 1}, t), Drawn("d", shape, t)},
       {{"Add", {0, 1}, t},
        {"Mul", {~0, 2}, t},
        {"Tanh", {~1}, t, true},
        {"Sub", {~2, 3}, t},
        {"Relu", {~3}, t, true}}});
}

TEST_P(CudaChain, GoesThroughOtherTypes) {
  const DType t = GetParam();
  const Shape shape{7, 9};
  const DType other = t == DType::kFloat ? DType::kDouble : DType::kFloat;
  const Attribute to_other(static_cast<int64_t>(other));
  const Attribute to_int(static_cast<int64_t>(DType::kInt32));
  const Attribute back(static_cast<int64_t>(t));
  CheckChain({"masks and casts",
              shape,
              {Drawn("a", shape, t), Drawn("b", {9}, t)},
              {{"Greater", {0, 1}, DType::kBool, true},
               {"Where", {~0, 0, 1}, t},
               {"Cast", {~1}, other, false, {{"to", to_other}}},
               {"Mul", {~2, ~2}, other},
               {"Cast", {~3}, DType::kInt32, true, {{"to", to_int}}},
               {"Cast", {~3}, t, true, {{"to", back}}}}});
}

TEST_P(CudaChain, TakesManyOperands) {
  const DType t = GetParam();
  const Shape shape{6, 3};
  CheckChain({"sums",
              shape,
              {Drawn("a", shape, t), Drawn("b", {3}, t), Drawn("c", {6, 1}, t)},
              {{"Sum", {0, 1, 2}, t},
               {"Mean", {~0, 0, 1}, t},
               {"Max", {~1, 2, 0}, t},
               {"Min", {~2, 1}, t, true},
               {"Pow", {0, ~1}, t, true}}});
}

INSTANTIATE_TEST_SUITE_P(Types, CudaChain,
                         testing::Values(DType::kFloat, DType::kDouble, DType::kFloat16,
                                         DType::kBFloat16),
                         [](const auto& info) { return std::string(DTypeName(info.param)); });

TEST(CudaChainLimits, DeclinesWhatIsTooLong) {
  const auto op = std::make_shared<Pointwise>();
  const std::vector<ValueSpec> inputs = {{DType::kFloat, Shape{4}, nullptr, nullptr}};
  std::vector<ChainStep> steps(100, ChainStep{op, {0}, DType::kFloat, -1});
  steps.back().output = 0;
  EXPECT_TRUE(
      absl::IsUnimplemented(Emulated().MakeChain(steps, inputs, Shape{4}, nullptr).status()));
  const std::vector<ValueSpec> many(17, inputs[0]);
  EXPECT_TRUE(absl::IsUnimplemented(
      Emulated().MakeChain({steps.data() + 99, 1}, many, Shape{4}, nullptr).status()));
}

}  // namespace onward::chain_test
