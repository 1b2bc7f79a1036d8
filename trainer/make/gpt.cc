// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "trainer/make/layers.h"
#include "trainer/make/make_model.h"

namespace onward {
namespace {

constexpr int64_t kHeadWidth = 32;
constexpr double kBound = 0.0346;  // a deviation of 0.02, as GPT-2 has it
constexpr double kMasked = -1e9;
constexpr float kEpsilon = 1e-5f;

class Transformer {
 public:
  Transformer(const GptSpec& spec, Layers* layers)
      : layers_(*layers),
        b_(layers->b()),
        width_(spec.width),
        heads_(std::max<int64_t>(1, spec.width / kHeadWidth)),
        // What is added to the residual stream is smaller, the more layers add to it.
        narrow_(kBound / std::sqrt(2.0 * static_cast<double>(spec.layers))) {}

  // True where a position would look at a later one: [length, length].
  Expr LaterOnes(const Expr& tokens) {
    const Expr length = Squeeze(ShapeOf(tokens, 1, 2), {0});
    const Expr positions = b_.Op("Range", {b_.Int(0), length, b_.Int(1)});
    return Less(Unsqueeze(positions, {1}), Unsqueeze(positions, {0}));
  }

  Expr Block(const Expr& x, const std::string& name, const Expr& later) {
    const Expr attended = x + Attention(Norm(x, name + ".norm1"), name + ".attention", later);
    const Expr wide = layers_.Gelu(
        Linear(Norm(attended, name + ".norm2"), name + ".mlp.in", width_, 4 * width_, kBound));
    return attended + Linear(wide, name + ".mlp.out", 4 * width_, width_, narrow_);
  }

  Expr Norm(const Expr& x, const std::string& name) {
    return b_.Op("LayerNormalization",
                 {x, layers_.Filled(name + ".weight", {width_}, 1),
                  layers_.Filled(name + ".bias", {width_}, 0)},
                 {{"axis", -1}, {"epsilon", kEpsilon}});
  }

 private:
  Expr Linear(const Expr& x, const std::string& name, int64_t in, int64_t out, double bound) {
    return MatMul(x, layers_.Weight(name + ".weight", {in, out}, bound)) +
           layers_.Filled(name + ".bias", {out}, 0);
  }

  // [N, length, width] as [N, heads, ...] in the order `perm` of N, length, heads, width.
  Expr Heads(const Expr& x, std::vector<int64_t> perm) {
    return Transpose(Reshape(x, b_.Ints({0, 0, heads_, width_ / heads_})), std::move(perm));
  }

  Expr Attention(const Expr& x, const std::string& name, const Expr& later) {
    const Expr q = Heads(Linear(x, name + ".query", width_, width_, kBound), {0, 2, 1, 3});
    const Expr k = Heads(Linear(x, name + ".key", width_, width_, kBound), {0, 2, 3, 1});
    const Expr v = Heads(Linear(x, name + ".value", width_, width_, kBound), {0, 2, 1, 3});
    const Expr scores = MatMul(q, k) * (1 / std::sqrt(static_cast<double>(width_ / heads_)));
    const Expr seen = Where(later, b_.Scalar(kMasked, scores), scores);
    const Expr weights = b_.Op("Softmax", {seen}, {{"axis", -1}});
    const Expr mixed = Transpose(MatMul(weights, v), {0, 2, 1, 3});
    return Linear(Reshape(mixed, b_.Ints({0, 0, width_})), name + ".out", width_, width_, narrow_);
  }

  Layers& layers_;
  GraphBuilder& b_;
  int64_t width_, heads_;
  double narrow_;
};

}  // namespace

absl::StatusOr<Model> MakeGpt(const GptSpec& spec, const Dataset& data, uint64_t seed,
                              const Environment& environment) {
  const Preparation* preparation = data.preparation();
  if (preparation == nullptr || !preparation->text || !preparation->text->column.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(data.source(), ": a gpt is made for a text, as in text:FILE?tokens=chars"));
  }
  const int64_t length = preparation->text->length, tokens = data.classes();
  Layers layers("gpt", seed, environment);
  GraphBuilder& b = layers.b();
  ValueType type = ValueType::Unranked(DType::kInt64);
  type.has_rank = true;
  type.dims = {Dim{-1, "N"}, Dim{-1, "length"}};
  const Expr x = b.Input("x", std::move(type));
  const Expr table = layers.Weight("tokens.weight", {tokens, spec.width}, kBound);
  const Expr places = layers.Weight("positions.weight", {length, spec.width}, kBound);
  const Expr of_places = Slice(places, b.Ints({0}), ShapeOf(x, 1, 2), b.Ints({0}));
  Transformer transformer(spec, &layers);
  const Expr later = transformer.LaterOnes(x);
  Expr h = Gather(table, x) + of_places;
  for (int64_t i = 0; i < spec.layers; ++i) {
    h = transformer.Block(h, absl::StrCat("block", i + 1), later);
  }
  return layers.Finish(MatMul(transformer.Norm(h, "norm"), Transpose(table, {1, 0})));
}

}  // namespace onward
