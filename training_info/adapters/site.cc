// SPDX-License-Identifier: Apache-2.0
#include "training_info/adapters/site.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/shape.h"
#include "training_info/weights/flow.h"

namespace onward {
namespace {

constexpr std::array kChain = {"Identity", "Transpose",        "Reshape",
                               "Squeeze",  "Unsqueeze",        "Flatten",
                               "Cast",     "DequantizeLinear", "QuantizeLinear"};

bool IsQuantization(const Node& node) {
  return node.Is("DequantizeLinear") || node.Is("QuantizeLinear") ||
         node.Is("DequantizeLinear", kMicrosoftDomain) ||
         node.Is("QuantizeLinear", kMicrosoftDomain);
}

// Follows the operand back to what is stored.
bool FollowChain(const Sight& sight, Site* site) {
  std::string value = site->key.operand;
  for (int hop = 0; hop <= kMostHops; ++hop) {
    if (sight.Stored(value).has_value()) {
      site->key.source = value;
      std::reverse(site->chain.begin(), site->chain.end());
      return true;
    }
    const Node* node = sight.Producer(value);
    if (node == nullptr || !node->HasInput(0) || node->outputs[0] != value) return false;
    const bool quantization = IsQuantization(*node);
    if (!quantization && !IsOneOf(*node, kChain)) return false;
    site->quantized |= quantization;
    site->chain.push_back(node);
    value = node->inputs[0];
  }
  return false;
}

// MatMulNBits and MatMulBnb4 say how large the weight is that their bytes stand for.
std::optional<Site> PackedSite(const Node& node, const Sight& sight) {
  if (!node.HasInput(2) || !node.HasOutput(0) || sight.IsConstant(node.inputs[0]))
    return std::nullopt;
  const std::optional<Tensor> bytes = sight.Stored(node.inputs[1]);
  const auto scales = sight.TypeOf(node.inputs[2]);
  const int64_t in = node.Int("K", 0), out = node.Int("N", 0);
  if (!bytes.has_value() || !scales.has_value() || in < 1 || out < 1) return std::nullopt;
  // A byte holds eight numbers at most.
  const int64_t most = bytes->elements() * 8;
  if (in > most || out > most) return std::nullopt;
  Site site;
  site.key = {.operand = node.inputs[1], .source = node.inputs[1], .form = Site::Form::kPacked};
  site.quantized = true;
  // MatMulBnb4's scales are float whatever the data is.
  const auto data = sight.TypeOf(node.inputs[0]);
  site.dtype = node.op_type == "MatMulNBits" || !data.has_value() ? scales->dtype : data->dtype;
  site.shape = {in, out};
  return site;
}

// What is not in the file: values in bodies have no types there.
std::optional<Sight::Known> Derived(const Node& node, const Sight::Known& from,
                                    const Sight& sight) {
  Sight::Known known = from;
  if (node.Is("Transpose")) {
    const std::vector<int64_t> perm = PermOf(node, from.shape.rank());
    if (!IsPermutation(perm, from.shape.rank())) return std::nullopt;
    for (int i = 0; i < from.shape.rank(); ++i)
      known.shape[i] = from.shape[static_cast<int>(perm[i])];
  } else if (node.Is("Cast")) {
    known.dtype = static_cast<DType>(node.Int("to", 0));
  } else if (node.op_type == "DequantizeLinear") {
    const auto scale = node.HasInput(1) ? sight.TypeOf(node.inputs[1]) : std::nullopt;
    if (!scale.has_value()) return std::nullopt;
    known.dtype = scale->dtype;
  } else if (!node.Is("Identity") && node.op_type != "QuantizeLinear") {
    return std::nullopt;
  }
  return known;
}

bool FitsForm(const Node& node, const Site& site) {
  const Shape& shape = site.shape;
  if (std::any_of(shape.begin(), shape.end(), [](int64_t d) { return d < 1; })) return false;
  if (node.Is("MatMul")) return shape.rank() >= 2;
  if (node.Is("Gemm")) return shape.rank() == 2;
  return shape.rank() >= 3 && site.key.groups >= 1 && shape[0] % site.key.groups == 0;
}

}  // namespace

std::vector<int64_t> PermOf(const Node& transpose, int rank) {
  std::vector<int64_t> reversed(rank);
  for (int i = 0; i < rank; ++i) reversed[i] = rank - 1 - i;
  return transpose.Ints("perm", std::move(reversed));
}

std::optional<std::vector<Sight::Known>> ChainTypes(const Site& site, const Sight& sight) {
  const auto source = sight.TypeOf(site.key.source);
  if (!source.has_value()) return std::nullopt;
  std::vector<Sight::Known> types = {*source};
  for (const Node* node : site.chain) {
    auto type = sight.TypeOf(node->outputs[0]);
    if (!type.has_value()) type = Derived(*node, types.back(), sight);
    if (!type.has_value() || type->shape.elements() != source->shape.elements())
      return std::nullopt;
    types.push_back(*std::move(type));
  }
  return types;
}

std::optional<Site> SiteOf(const Node& node, const Sight& sight) {
  if (node.Is("MatMulNBits", kMicrosoftDomain) || node.Is("MatMulBnb4", kMicrosoftDomain))
    return PackedSite(node, sight);
  const bool conv = node.Is("Conv");
  if (!conv && !node.Is("MatMul") && !node.Is("Gemm")) return std::nullopt;
  if (!node.HasInput(0) || !node.HasInput(1) || !node.HasOutput(0)) return std::nullopt;
  const bool first = sight.IsConstant(node.inputs[0]), second = sight.IsConstant(node.inputs[1]);
  // A product of constants is one, and so is data with data of no use.
  if (first == second || (conv && first)) return std::nullopt;
  Site site;
  site.input = second ? 1 : 0;
  site.key.operand = node.inputs[site.input];
  site.key.form = conv ? Site::Form::kConv : second ? Site::Form::kRight : Site::Form::kLeft;
  site.key.transposed = node.Is("Gemm") && node.Int(second ? "transB" : "transA", 0) != 0;
  site.key.groups = conv ? node.Int("group", 1) : 1;
  if (!FollowChain(sight, &site)) return std::nullopt;
  const auto types = ChainTypes(site, sight);
  if (!types.has_value() || !IsFloating(types->back().dtype)) return std::nullopt;
  site.dtype = types->back().dtype;
  site.shape = types->back().shape;
  if (!FitsForm(node, site)) return std::nullopt;
  return site;
}

int64_t Site::in() const {
  const int last = shape.rank() - 1;
  switch (key.form) {
    case Form::kConv: return shape.elements(1, shape.rank());
    case Form::kLeft: return shape[key.transposed ? last - 1 : last];
    case Form::kRight:
    case Form::kPacked: return shape[key.transposed ? last : last - 1];
  }
  return 1;
}

int64_t Site::out() const {
  return key.form == Form::kConv ? shape[0] / key.groups
                                 : shape[shape.rank() - 1] * shape[shape.rank() - 2] / in();
}

Shape Site::DownShape(int64_t rank) const {
  Shape down = shape;
  const int last = shape.rank() - 1;
  if (key.form == Form::kConv) {
    down[0] = rank * key.groups;
    return down;
  }
  down[last - 1] = key.form == Form::kLeft ? rank : in();
  down[last] = key.form == Form::kLeft ? in() : rank;
  return down;
}

Shape Site::UpShape(int64_t rank) const {
  Shape up = shape;
  const int last = shape.rank() - 1;
  if (key.form == Form::kConv) {
    up[1] = rank;
    for (int axis = 2; axis <= last; ++axis) up[axis] = 1;
    return up;
  }
  up[last - 1] = key.form == Form::kLeft ? out() : rank;
  up[last] = key.form == Form::kLeft ? rank : out();
  return up;
}

int64_t Site::UsefulRank(int64_t rank) const {
  return key.groups == 1 ? rank : std::min({rank, in(), out()});
}

}  // namespace onward
