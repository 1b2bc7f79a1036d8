// SPDX-License-Identifier: Apache-2.0
// An operator test.Faulty (x) -> y = x, as a list: with the fault that the environment variable
// ONWARD_TEST_FAULT names.
#include <onward/plugin.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace {

using onward::Call;
using onward::Expr;
using onward::GradientCall;
using onward::KernelCall;
using onward::OperatorDef;
using onward::Result;
using onward::Status;
using onward::StatusCode;
using onward::TensorType;

bool Fault(const std::string& name) {
  const char* fault = std::getenv("ONWARD_TEST_FAULT");
  return fault != nullptr && name == fault;
}

void MayThrow(const std::string& where) {
  if (Fault(where + " throws")) throw std::runtime_error("as told to");
  if (Fault(where + " throws a number")) throw 42;
}

bool LeavesShapeOpen() { return Fault("open shape") || Fault("forgets its output"); }

Result<std::vector<TensorType>> Types(const Call& call) {
  MayThrow("type rule");
  if (Fault("type rule fails")) return Status(StatusCode::kInvalidArgument, "no types today");
  if (Fault("too many types")) return std::vector<TensorType>{call.input(0), call.input(0)};
  TensorType type = call.input(0);
  if (Fault("no such type")) type.element_type = static_cast<onward::ElementType>(1000);
  if (Fault("absurd shape")) type.shape = {int64_t{1} << 40, int64_t{1} << 40};
  if (LeavesShapeOpen()) type.shape.assign(type.shape.size(), -1);
  return std::vector<TensorType>{type};
}

Status Run(KernelCall& call) {
  MayThrow("kernel");
  if (Fault("kernel fails")) return Status(StatusCode::kNotFound, "it was lost");
  const onward::TensorView x = call.input(0);
  onward::TensorView y = call.output(0);
  if (Fault("forgets its output")) return {};
  if (Fault("absurd output")) return call.MakeOutput(0, {-5}).status();
  if (y.bytes == nullptr) {
    Result<onward::TensorView> made = call.MakeOutput(0, {x.dims, x.dims + x.rank});
    if (!made.ok()) return made.status();
    y = *made;
  }
  std::copy_n(x.data<float>(), x.elements(), y.data<float>());
  return {};
}

Result<onward::Kernel> MakeKernel(const Call&) {
  MayThrow("kernel maker");
  if (Fault("no kernel")) return onward::Kernel();
  if (Fault("not these types")) return Status(StatusCode::kUnimplemented, "other types only");
  return onward::Kernel(Run);
}

std::vector<Expr> Gradient(const GradientCall& v) {
  MayThrow("gradient rule");
  if (Fault("too many gradients")) return {v.dy(), v.dy()};
  if (Fault("foreign gradient")) return {Expr(v.dy().writer(), 12345)};
  if (Fault("no such operand")) return {onward::Op("Relu", {Expr(v.dy().writer(), 12345)})};
  if (Fault("no such input")) return {v.x(7)};
  if (Fault("no such operator")) return {onward::Op("Nonsense", {v.dy()}, {}, "nowhere")};
  return {v.dy()};
}

const char* Body() {
  if (Fault("broken body")) return "Faulty (x) => ";
  if (Fault("other body")) {
    return R"(<domain: "test", opset_import: ["" : 18]> Other (x) => (y) { y = Identity(x) })";
  }
  if (Fault("new body")) {
    return R"(<domain: "test", opset_import: ["" : 21]> Faulty (x) => (y) { y = Identity(x) })";
  }
  if (Fault("body of unknowns")) {
    return R"(<domain: "test", opset_import: ["" : 18]> Faulty (x) => (y) { y = Nonsense(x) })";
  }
  if (Fault("circular body")) {
    return R"(<domain: "test", opset_import: ["" : 18, "test" : 1]>
              Faulty (x) => (y) { y = test.Faulty(x) })";
  }
  return "";
}

Status Register(onward::Registry& registry) {
  MayThrow("Register");
  if (Fault("Register fails")) return Status(StatusCode::kUnavailable, "not on Tuesdays");
  OperatorDef def;
  def.domain = Fault("taken domain") ? "ai.onward" : Fault("no domain") ? "" : "test";
  def.name = Fault("no name") ? "" : Fault("known operator") ? "Relu" : "Faulty";
  if (Fault("known operator")) def.domain = "";
  if (Fault("new version")) def.since = 7;
  if (!Fault("no type rule")) def.types = Types;
  if (!Fault("nothing")) def.kernel = MakeKernel;
  if (!Fault("no gradient")) def.gradient = Gradient;
  def.body = Body();
  if (Fault("hides an error")) def.name = "";
  const Status added = registry.Add(def);
  if (Fault("hides an error")) return {};
  return Fault("adds twice") ? registry.Add(def) : added;
}

}  // namespace

extern "C" const onward::Plugin* onward_plugin() {
  MayThrow("onward_plugin");
  static const onward::Plugin plugin = {onward::kPluginAbi, Register},
                              old = {"onward-plugin 0.0", Register}, lost = {nullptr, Register},
                              idle = {onward::kPluginAbi, nullptr};
  if (Fault("null plugin")) return nullptr;
  return Fault("old interface")  ? &old
         : Fault("no interface") ? &lost
         : Fault("no Register")  ? &idle
                                 : &plugin;
}
