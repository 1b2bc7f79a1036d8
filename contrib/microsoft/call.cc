// SPDX-License-Identifier: Apache-2.0
// What the bodies share.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "contrib/microsoft/families.h"
#include "contrib/microsoft/microsoft.h"

namespace onward {

void RegisterMicrosoftFunctions(FunctionLibrary& library) {
  microsoft::RegisterActivations(library);
  microsoft::RegisterConvolutions(library);
  microsoft::RegisterMatMuls(library);
  microsoft::RegisterPackedWeights(library);
  microsoft::RegisterNormalizations(library);
  microsoft::RegisterAttentions(library);
  microsoft::RegisterRotary(library);
  microsoft::RegisterQuantized(library);
  microsoft::RegisterQuantizedLayers(library);
  microsoft::RegisterShapes(library);
  microsoft::RegisterCrops(library);
  microsoft::RegisterLegacy(library);
  microsoft::RegisterBlockedLayouts(library);
}

namespace microsoft {

Expr Call::Fail(const std::string& message) const {
  return b_.Fail(absl::InvalidArgumentError(absl::StrCat(node_.Describe(), ": ", message)));
}

std::vector<Expr> Call::Refuse(const std::string& message) const {
  Fail(message);
  return {};
}

bool Call::HasRank(size_t i, std::initializer_list<int> ranks) const {
  const Expr x = in(i);
  if (!x.defined()) return true;
  if (std::find(ranks.begin(), ranks.end(), x.rank()) != ranks.end()) return true;
  const std::string wanted = absl::StrJoin(ranks, " or ");
  if (x.rank() < 0) {
    Fail(absl::StrCat("the rank of input ", i, " is not known, expected ", wanted,
                      "; declare its shape"));
  } else {
    Fail(absl::StrCat("input ", i, " is ", x.type().ToString(), ", expected rank ", wanted));
  }
  return false;
}

bool Call::Given(std::initializer_list<int> operands) const {
  for (const int i : operands) {
    if (node_.HasInput(i)) continue;
    Fail(absl::StrCat("input ", i, " is missing"));
    return false;
  }
  return true;
}

int64_t Call::IntIn(const std::string& attribute, int64_t otherwise, int64_t low,
                    int64_t high) const {
  const int64_t value = node_.Int(attribute, otherwise);
  auto it = node_.attributes.find(attribute);
  const bool is_int =
      it == node_.attributes.end() || std::holds_alternative<int64_t>(it->second.value);
  if (is_int && value >= low && value <= high) return value;
  Fail(absl::StrCat("attribute ", attribute, " is ", is_int ? absl::StrCat(value) : "no integer",
                    ", expected ", low, " to ", high));
  return low;
}

int64_t Call::RequiredInt(const std::string& attribute, int64_t low, int64_t high) const {
  if (node_.Has(attribute)) return IntIn(attribute, low, low, high);
  Fail(absl::StrCat("attribute ", attribute, " is missing"));
  return low;
}

bool Call::Flag(const std::string& attribute, bool otherwise) const {
  return IntIn(attribute, otherwise ? 1 : 0, 0, 1) == 1;
}

bool Call::Without(size_t i, const std::string& what) const {
  if (!in(i).defined()) return true;
  Fail(absl::StrCat("input ", i, " (", what, ") is not supported"));
  return false;
}

bool Call::Without(const std::string& attribute, int64_t standard) const {
  const int64_t value = node_.Int(attribute, standard);
  if (value == standard) return true;
  Fail(absl::StrCat("attribute ", attribute, " is ", value, "; only ", standard, " is supported"));
  return false;
}

std::vector<float> Call::Floats(const std::string& attribute) const {
  auto it = node_.attributes.find(attribute);
  const auto* list =
      it == node_.attributes.end() ? nullptr : std::get_if<std::vector<float>>(&it->second.value);
  return list == nullptr ? std::vector<float>() : *list;
}

Attributes Call::Pick(std::initializer_list<std::string> names) const {
  Attributes picked;
  for (const std::string& name : names) {
    auto it = node_.attributes.find(name);
    if (it != node_.attributes.end()) picked.insert(*it);
  }
  return picked;
}

FunctionDef Define(CallBody body, int required, std::string operands) {
  FunctionDef def;
  def.body = [body](GraphBuilder& b, const Node& node, const std::vector<Expr>& inputs) {
    return body(Call(b, node, inputs));
  };
  def.required = required;
  def.operands = std::move(operands);
  return def;
}

Expr SliceAxis(const Expr& x, int64_t axis, int64_t first, int64_t last) {
  GraphBuilder& b = x.builder();
  return Slice(x, b.Ints({first}), b.Ints({last}), b.Ints({axis}));
}

Expr RangeTo(const Expr& count) {
  GraphBuilder& b = count.builder();
  return b.Op("Range", {b.Int(0), count, b.Int(1)});
}

Expr DimOf(const Expr& x, int axis) {
  if (const int64_t known = x.dim(axis); known >= 0) return x.builder().Int(known);
  const int64_t last = axis + 1;
  Expr dim = last == 0 ? x.builder().Op("Shape", {x}, {{"start", axis}}) : ShapeOf(x, axis, last);
  return Squeeze(dim, {0});
}

Expr ChannelsFirst(const Expr& x) {
  std::vector<int64_t> perm = {0, x.rank() - 1};
  for (int axis = 1; axis < x.rank() - 1; ++axis) perm.push_back(axis);
  return Transpose(x, std::move(perm));
}

Expr ChannelsLast(const Expr& x) {
  std::vector<int64_t> perm = {0};
  for (int axis = 2; axis < x.rank(); ++axis) perm.push_back(axis);
  perm.push_back(1);
  return Transpose(x, std::move(perm));
}

}  // namespace microsoft
}  // namespace onward
