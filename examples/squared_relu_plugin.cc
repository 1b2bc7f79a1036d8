// SPDX-License-Identifier: Apache-2.0
// A plugin that adds an operator with kernel, type rule and gradient:
//
//   com.example.SquaredRelu (x) -> y = scale * max(x, 0)^2        attribute scale = 1
//
//   c++ -std=c++17 -shared -fPIC squared_relu_plugin.cc -o libsquared_relu.so
//   onward run model.onnx --plugin libsquared_relu.so --input x=x.npy
#include <onward/plugin.h>

#include <algorithm>

namespace {

using onward::ElementType;
using onward::Status;
using onward::StatusCode;

// y is of the type of x, whatever is known of that.
onward::Result<std::vector<onward::TensorType>> Types(const onward::Call& call) {
  if (call.inputs() != 1 || call.outputs() != 1) {
    return Status(StatusCode::kInvalidArgument, "SquaredRelu has one input and one output");
  }
  return std::vector<onward::TensorType>{call.input(0)};
}

template <typename T>
onward::Kernel KernelFor(T scale) {
  return [scale](onward::KernelCall& call) {
    const onward::TensorView x = call.input(0), y = call.output(0);
    std::transform(x.data<T>(), x.data<T>() + x.elements(), y.data<T>(), [scale](T v) {
      const T positive = v < 0 ? 0 : v;  // NaN stays
      return scale * positive * positive;
    });
    return Status();
  };
}

onward::Result<onward::Kernel> MakeKernel(const onward::Call& call) {
  const double scale = call.Float("scale", 1);
  if (call.input(0).element_type == ElementType::kFloat) {
    return KernelFor<float>(static_cast<float>(scale));
  }
  if (call.input(0).element_type == ElementType::kDouble) return KernelFor<double>(scale);
  return Status(StatusCode::kUnimplemented, "only float and double");
}

// y = scale * max(x, 0)^2;  dx = dy * 2 * scale * max(x, 0)
std::vector<onward::Expr> Gradient(const onward::GradientCall& v) {
  return {v.dy() * (onward::Op("Relu", {v.x()}) * (2 * v.Float("scale", 1)))};
}

Status Register(onward::Registry& registry) {
  onward::OperatorDef def;
  def.domain = "com.example";
  def.name = "SquaredRelu";
  def.types = Types;
  def.kernel = MakeKernel;
  def.gradient = Gradient;
  return registry.Add(def);
}

}  // namespace

extern "C" const onward::Plugin* onward_plugin() {
  static const onward::Plugin plugin = {onward::kPluginAbi, Register};
  return &plugin;
}
