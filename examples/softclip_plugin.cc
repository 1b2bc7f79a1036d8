// SPDX-License-Identifier: Apache-2.0
// A plugin that adds an operator by its body alone, an ONNX function in text form:
//
//   com.example.SoftClip (x) -> y = limit * tanh(x / limit)       attribute limit = 1
//
// It runs, is differentiated and trains as what it is made of.
//
//   c++ -std=c++17 -shared -fPIC softclip_plugin.cc -o libsoftclip.so
//   onward run model.onnx --plugin libsoftclip.so --input x=x.npy
#include <onward/plugin.h>

namespace {

constexpr char kBody[] = R"(
  <domain: "com.example", opset_import: ["" : 18]>
  SoftClip <limit: float = 1.0> (x) => (y) {
    number = Constant <value_float: float = @limit> ()
    limit = CastLike (number, x)
    share = Div (x, limit)
    bent = Tanh (share)
    y = Mul (bent, limit)
  })";

onward::Status Register(onward::Registry& registry) {
  onward::OperatorDef def;
  def.domain = "com.example";
  def.name = "SoftClip";
  def.body = kBody;
  return registry.Add(def);
}

}  // namespace

extern "C" const onward::Plugin* onward_plugin() {
  static const onward::Plugin plugin = {onward::kPluginAbi, Register};
  return &plugin;
}
