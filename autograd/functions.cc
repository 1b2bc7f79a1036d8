// SPDX-License-Identifier: Apache-2.0
#include "autograd/functions.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/rule.h"

namespace onward {

void RegisterGradientFunctions(FunctionLibrary& library) {
  RegisterActivationFunctions(library);
  RegisterConvFunctions(library);
  RegisterPoolFunctions(library);
  RegisterNormFunctions(library);
  RegisterAttentionFunctions(library);
  RegisterRnnFunctions(library);
  RegisterLossFunctions(library);
  RegisterIndexFunctions(library);
  RegisterImageFunctions(library);
  RegisterSamplingFunctions(library);
  RegisterDeformFunctions(library);
  RegisterRoiFunctions(library);
  RegisterMlFunctions(library);
  RegisterSequenceFunctions(library);
  RegisterEinsumFunctions(library);
  RegisterDetFunctions(library);
}

Expr FailAt(GraphBuilder& b, const Node& node, const std::string& message) {
  return b.Fail(absl::InvalidArgumentError(absl::StrCat(node.Describe(), ": ", message)));
}

Expr Argument(const std::vector<Expr>& inputs, size_t i) {
  return i < inputs.size() ? inputs[i] : Expr();
}

Attributes Pick(const Node& node, std::initializer_list<std::string_view> names) {
  Attributes picked;
  for (std::string_view name : names) {
    auto it = node.attributes.find(std::string(name));
    if (it != node.attributes.end()) picked.insert(*it);
  }
  return picked;
}

std::vector<int64_t> AxesRange(int64_t first, int64_t last) {
  std::vector<int64_t> axes;
  for (int64_t i = first; i < last; ++i) axes.push_back(i);
  return axes;
}

std::vector<int64_t> AxesBut(int rank, int axis) {
  std::vector<int64_t> axes;
  for (int i = 0; i < rank; ++i) {
    if (i != axis) axes.push_back(i);
  }
  return axes;
}

Expr DimsOf(const Expr& x, int first, int last) {
  std::vector<int64_t> dims;
  for (int i = first; i < last; ++i) dims.push_back(x.dim(i));
  if (std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d < 0; })) {
    return ShapeOf(x, first, last);
  }
  return x.builder().Ints(std::move(dims));
}

Extent Fixed(int64_t value) { return {value, {}, 0}; }
Extent DimOf(const Expr& x, int axis) { return {x.dim(axis), x, axis}; }
Extent Rest() { return {}; }

Expr ReshapeTo(const Expr& x, const std::vector<Extent>& shape) {
  GraphBuilder& b = x.builder();
  std::vector<int64_t> dims;
  for (const Extent& e : shape) dims.push_back(e.known);
  const auto unknown = std::count(dims.begin(), dims.end(), -1);
  // allowzero: a known zero is a real zero, not "copy".
  if (unknown == 0) return b.Op("Reshape", {x, b.Ints(dims)}, {{"allowzero", 1}});
  if (unknown == 1) return Reshape(x, std::move(dims));
  std::vector<Expr> parts;
  for (const Extent& e : shape) {
    const bool from_source = e.known < 0 && e.source.defined();
    parts.push_back(from_source ? ShapeOf(e.source, e.axis, e.axis + 1) : b.Ints({e.known}));
  }
  Expr y = Reshape(x, Concat(std::move(parts), 0));
  // Inference does not follow the computed shape; what follows needs the rank.
  ValueType& type = b.graph().types[y.name()];
  type.dtype = x.dtype();
  type.has_rank = true;
  type.dims.assign(shape.size(), Dim());
  for (size_t i = 0; i < shape.size(); ++i) type.dims[i].value = shape[i].known;
  return y;
}

Expr Channelled::Of(const Expr& e) const {
  if (!flattens()) return e;
  if (!channels_.defined()) return Reshape(e, {0, 0, -1});
  return ReshapeTo(e, {DimOf(e, 0), DimOf(channels_, 0), Rest()});
}

Expr Channelled::Back(const Expr& e) const { return flattens() ? ReshapeLike(e, x_) : e; }

Expr AlongAxis(const Expr& vector, int axis, int rank) {
  std::vector<int64_t> shape(rank, 1);
  shape[axis] = -1;
  return Reshape(vector, std::move(shape));
}

}  // namespace onward
