// SPDX-License-Identifier: Apache-2.0
// Layers on numbers of eight bits: convolutions, pools, embeddings and the LSTM.
#include <utility>

#include "absl/strings/str_cat.h"
#include "contrib/microsoft/families.h"

namespace onward::microsoft {
namespace {

// The standard's operator, the channels first where they are last here.
std::vector<Expr> QLinearConv(const Call& call) {
  const bool last = call.Flag("channels_last");
  if (!call.ok() || (last && !call.HasRank(0, {3, 4, 5}))) return {};
  std::vector<Expr> inputs;
  for (size_t i = 0; i < call.inputs(); ++i) inputs.push_back(call.in(i));
  if (last) inputs[0] = ChannelsFirst(inputs[0]);
  const Expr y =
      call.b().Op("QLinearConv", std::move(inputs),
                  call.Pick({"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}));
  if (!call.ok() || !last) return {y};
  if (y.rank() < 3) return call.Refuse("the weights have an unknown rank");
  return {ChannelsLast(y)};
}

std::vector<Expr> Pooled(const Call& call, const char* op, Attributes attributes) {
  const bool last = call.Flag("channels_last");
  if (!call.ok() || !call.HasRank(0, {3, 4, 5}) || !call.Given({3})) return {};
  Expr x = DequantizeTensor(call.in(0), call.in(1), call.in(2));
  if (last) x = ChannelsFirst(x);
  Expr y = call.b().Op(op, {x}, std::move(attributes));
  if (!call.ok()) return {};
  if (last) y = ChannelsLast(y);
  return {QuantizeTensor(y, call.in(3), call.in(4), call.in(0).dtype())};
}

std::vector<Expr> QLinearAveragePool(const Call& call) {
  return Pooled(
      call, "AveragePool",
      call.Pick({"auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides"}));
}
std::vector<Expr> QLinearGlobalAveragePool(const Call& call) {
  return Pooled(call, "GlobalAveragePool", {});
}

// The rows of quantized tables, each with its scale and zero point further on.
std::vector<Expr> QEmbedLayerNormalization(const Call& call) {
  if (!call.HasRank(0, {2}) || !call.Given({2, 3, 5, 6, 8, 9, 11, 12, 13, 14, 16, 17})) return {};
  const auto real = [&](const Expr& q, size_t scale) {
    return Dequantized(q, call.in(scale), call.in(scale + 5), call.in(scale));
  };
  Embedding parts;
  parts.ids = call.in(0);
  parts.mask = call.in(7);
  parts.word_rows = real(Gather(call.in(2), parts.ids), 8);
  parts.position_rows =
      real(Slice(call.in(3), call.b().Ints({0}), ShapeOf(parts.ids, 1, 2), call.b().Ints({0})), 9);
  if (call.in(1).defined() && call.in(4).defined()) {
    if (!call.Given({10, 15})) return {};
    parts.segment_rows = real(Gather(call.in(4), call.in(1)), 10);
  }
  parts.gamma = real(call.in(5), 11);
  parts.beta = real(call.in(6), 12);
  return EmbedAndNormalize(call, parts);
}

// Weights of [directions, inputs, 4 hidden] with a scale per direction or per column. What
// goes in stays real, where onnxruntime brings each step's inputs to eight bits.
std::vector<Expr> DynamicQuantizeLstm(const Call& call) {
  if (!call.Given({8, 9, 10, 11}) || !call.HasRank(1, {3}) || !call.HasRank(2, {3})) return {};
  const auto weight = [&](const Expr& q, const Expr& scale, const Expr& zero) {
    const auto along = [](const Expr& v) {
      return v.rank() == 2 ? Unsqueeze(v, {1}) : v.rank() == 1 ? Reshape(v, {-1, 1, 1}) : v;
    };
    return Transpose(Dequantized(q, along(scale), along(zero), scale), {0, 2, 1});
  };
  return call.b().Ops("LSTM",
                      {call.in(0), weight(call.in(1), call.in(8), call.in(9)),
                       weight(call.in(2), call.in(10), call.in(11)), call.in(3), call.in(4),
                       call.in(5), call.in(6), call.in(7)},
                      3,
                      call.Pick({"activation_alpha", "activation_beta", "activations", "clip",
                                 "direction", "hidden_size", "input_forget"}));
}

}  // namespace

void RegisterQuantizedLayers(FunctionLibrary& library) {
  library.Add("QLinearConv", Define(QLinearConv, 8, "ITIITITII"), kDomain);
  library.Add("QLinearAveragePool", Define(QLinearAveragePool, 2, "ITITI"), kDomain);
  library.Add("QLinearGlobalAveragePool", Define(QLinearGlobalAveragePool, 2, "ITITI"), kDomain);
  library.Add("QEmbedLayerNormalization", Define(QEmbedLayerNormalization, 1), kDomain);
  library.Add("DynamicQuantizeLSTM", Define(DynamicQuantizeLstm, 3, "TIITITTTTITI"), kDomain);
}

}  // namespace onward::microsoft
