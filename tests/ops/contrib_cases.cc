// SPDX-License-Identifier: Apache-2.0
// The operators that onnxruntime adds: their values are held by tests/golden/contrib.txt, here
// they are differentiated.
#include "tests/ops/cases.h"

namespace onward {
namespace {

// The operator is the name up to the first '_', as everywhere.
OpCase Microsoft(std::string name, std::vector<Arg> args, Attributes attributes = {}) {
  OpCase c = Case(name + (name.find('_') == std::string::npos ? "_" : "") + "contrib",
                  std::move(args), std::move(attributes));
  c.domain = "com.microsoft";
  return c;
}

Arg Bytes(Shape shape) { return Below(std::move(shape), 256, DType::kUint8); }
Arg Masks(Shape shape, std::vector<int64_t> values) {
  return Fed(std::move(shape), std::move(values), DType::kInt32);
}

std::vector<OpCase> Layers() {
  const std::vector<int64_t> pads = {1, 1, 1, 1};
  return {
      Microsoft("Gelu", {Real({2, 3})}).Unknown({0}),
      Microsoft("BiasGelu", {Real({2, 3}), Real({3})}).Unknown({0}),
      Microsoft("FastGelu", {Real({2, 3}), Real({3})}).Unknown({0}),
      Microsoft("QuickGelu", {Real({2, 3})}, {{"alpha", 1.5}}).Unknown({0}),
      Microsoft("BiasSplitGelu", {Real({2, 3, 4}), Real({4})}),
      Microsoft("BiasAdd", {Real({2, 3}), Real({3}), Real({2, 3})}),
      Microsoft("BiasSoftmax", {Real({2, 3, 4}), Real({2, 1, 4})},
                {{"axis", 2}, {"is_inner_broadcast", 1}}),
      Microsoft("BiasSoftmax_axes_", {Real({2, 2, 3}), Real({2, 1, 3})},
                {{"axis", 1}, {"is_inner_broadcast", 1}}),
      Microsoft("GemmFastGelu", {Real({2, 3}), Real({3, 2}), Real({2})}),
      Microsoft("FusedConv",
                {Real({1, 2, 3, 3}), Real({2, 2, 2, 2}), Real({2}), Real({1, 2, 4, 4})},
                {{"pads", pads}, {"activation", "Tanh"}}),
      Microsoft("FusedConv_leaky_", {Real({2, 2, 3}), Real({2, 2, 2})},
                {{"activation", "LeakyRelu"}, {"activation_params", std::vector<float>{0.2f}}})
          .Unknown({0}),
      Microsoft("NhwcConv", {Real({1, 3, 3, 2}), Real({3, 2, 2, 2}), Real({3})}).Unknown({0}),
      Microsoft(
          "NhwcMaxPool", {Real({1, 4, 4, 2})},
          {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}}),
      Microsoft("FusedMatMul", {Real({2, 3, 2}), Real({2, 2, 3})},
                {{"alpha", 0.5}, {"transA", 1}, {"transB", 1}}),
      Microsoft("FusedMatMul_batch_", {Real({3, 2, 2}), Real({2, 2, 2})},
                {{"transBatchA", 1}, {"transBatchB", 1}}),
      Microsoft("TransposeMatMul", {Real({2, 3, 2}), Real({2, 3, 2})}, {{"transB", 1}}),
      Microsoft("FusedMatMulActivation", {Real({2, 3}), Real({3, 2})}, {{"activation", "Sigmoid"}}),
      Microsoft("FusedGemm", {Real({2, 3}), Real({3, 2}), Real({2})},
                {{"activation", "Elu"}, {"activation_alpha", 0.5}, {"alpha", 0.5}})
          .Unknown({0}),
      Microsoft("CDist", {Real({2, 3}), Real({3, 3})}, {{"metric", "euclidean"}}),
      Microsoft("MatMulIntegerToFloat", {Bytes({2, 3}), Bytes({3, 2}), Real({}), Real({2}),
                                         Omitted(), Omitted(), Real({2})}),
      Microsoft("MatMulNBits",
                {Real({2, 32}), Bytes({2, 2, 8}), Real({2, 2}), Omitted(), Omitted(), Real({2})},
                {{"N", 2}, {"K", 32}, {"bits", 4}, {"block_size", 16}})
          .Unknown({0}),
      Microsoft("GatherBlockQuantized", {Bytes({3, 8}), Below({2}, 3), Real({3, 1})},
                {{"block_size", 16}}),
  };
}

std::vector<OpCase> Normalizations() {
  return {
      Microsoft("LayerNormalization", {Real({2, 3, 2}), Real({2}), Real({2})}).Unknown({0}),
      Microsoft("SimplifiedLayerNormalization", {Real({2, 3}), Real({3})}).Unknown({0}),
      Microsoft("SimplifiedLayerNormalization_axis_", {Real({2, 2, 2}), Real({2, 2})},
                {{"axis", 1}})
          .Outputs(2, {0, 1}),
      Microsoft("SkipLayerNormalization",
                {Real({2, 2, 3}), Real({2, 3}), Real({3}), Real({3}), Real({3})},
                {{"epsilon", 1e-5}})
          .Unknown({0}),
      Microsoft("SkipSimplifiedLayerNormalization", {Real({2, 3}), Real({2, 3}), Real({3})},
                {{"epsilon", 1e-5}}),
      Microsoft("EmbedLayerNormalization",
                {Below({2, 3}, 4, DType::kInt32), Below({2, 3}, 2, DType::kInt32), Real({4, 2}),
                 Real({5, 2}), Real({2, 2}), Real({2}), Real({2})},
                {{"epsilon", 1e-3}})
          .Unknown({0, 1}),
      Microsoft("GroupNorm", {Real({1, 2, 2, 4}), Real({4}), Real({4})},
                {{"activation", 1}, {"groups", 2}}),
  };
}

std::vector<OpCase> Attentions() {
  const Attributes two = {{"num_heads", 2}};
  const Attributes grouped = {{"do_rotary", 1}, {"kv_num_heads", 1}, {"num_heads", 2}};
  return {
      Microsoft("Attention", {Real({2, 2, 4}), Real({4, 12}), Real({12})}, two).Unknown({0}),
      Microsoft("Attention_causal_",
                {Real({1, 3, 2}), Real({2, 6}), Real({6}), Masks({1, 3}, {1, 1, 0})},
                {{"num_heads", 1}, {"unidirectional", 1}}),
      Microsoft("Attention_past_",
                {Real({1, 2, 2}), Real({2, 6}), Real({6}), Omitted(), Real({2, 1, 1, 2, 2})},
                {{"num_heads", 1}, {"unidirectional", 1}})
          .Outputs(2, {0, 1}),
      Microsoft("MultiHeadAttention",
                {Real({2, 2, 4}), Real({2, 3, 4}), Real({2, 3, 2}), Real({10}), Masks({2}, {2, 3}),
                 Real({1, 2, 2, 3})},
                two)
          .Unknown({0, 1, 2}),
      Microsoft("RotaryEmbedding", {Real({2, 2, 8}), Below({2, 2}, 4), Real({4, 2}), Real({4, 2})})
          .By({0})
          .Unknown({0, 1}),
      Microsoft("RotaryEmbedding_interleaved_",
                {Real({1, 2, 2, 4}), Below({1, 2}, 4), Real({4, 1}), Real({4, 1})},
                {{"interleaved", 1}, {"rotary_embedding_dim", 2}, {"num_heads", 2}}),
      Microsoft("GroupQueryAttention",
                {Real({1, 2, 8}), Real({1, 2, 4}), Real({1, 2, 4}), Omitted(), Omitted(),
                 Masks({1}, {1}), Masks({}, {2}), Real({4, 2}), Real({4, 2})},
                grouped)
          .By({0, 1, 2})
          .Unknown({0, 1, 2}),
  };
}

std::vector<OpCase> Shapes() {
  return {
      Microsoft("ExpandDims", {Real({2, 3}), Masks({}, {1})}).DataDependent(),
      Microsoft("Trilu", {Real({2, 3, 3})}, {{"upper", 0}}),
      Microsoft("GatherND", {Real({2, 3}), Masks({2, 1}, {1, 0})}),
      Microsoft("Pad", {Real({2, 3}), Ints({0, 1, 1, 0}), Real({})}).DataDependent(),
      Microsoft("TorchEmbedding", {Real({4, 3}), Below({2, 2}, 4)}),
      Microsoft("ComplexMul", {Real({2, 2}), Real({2, 2})}),
      Microsoft("ComplexMulConj", {Real({2, 2}), Real({2, 2})}),
      Microsoft("CropAndResize", {Real({1, 1, 3, 3}), Real({2, 4}, 0.1, 0.9), Masks({2}, {0, 0}),
                                  Masks({2}, {2, 3})})
          .DataDependent(),
      Microsoft("Affine", {Real({2, 3})}, {{"alpha", 0.5}, {"beta", 1.5}}),
      Microsoft("ScaledTanh", {Real({2, 3})}, {{"alpha", 0.5}, {"beta", 1.5}}),
      Microsoft("ParametricSoftplus", {Real({2, 3})}, {{"alpha", 0.5}, {"beta", 1.5}}),
      Microsoft("ImageScaler", {Real({1, 2, 2, 2})},
                {{"scale", 0.5}, {"bias", std::vector<float>{0.25f, -0.5f}}}),
      Microsoft("Crop", {Real({1, 1, 4, 4})}, {{"border", std::vector<int64_t>{1, 1, 0, 1}}}),
  };
}

}  // namespace

std::vector<OpCase> ContribCases() {
  std::vector<OpCase> all;
  for (auto* family : {Layers, Normalizations, Attentions, Shapes}) {
    for (OpCase& c : family()) all.push_back(std::move(c));
  }
  return all;
}

}  // namespace onward
