// SPDX-License-Identifier: Apache-2.0
#include "core/graph/shape_data.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/numeric/int128.h"

namespace onward {
namespace {

// Longer lists are no shapes.
constexpr int64_t kMostElements = 64;

SizeElement Number(int64_t n) { return {n}; }

SizeElement FromDim(const Dim& dim) {
  if (dim.known()) return Number(dim.value);
  return {std::nullopt, dim.symbol};
}

// Dimensions that nothing is known of, or that a number below zero says it of, stay so.
Dim ToDim(const SizeElement& e) {
  if (e.number.has_value()) return {*e.number >= 0 ? *e.number : -1, ""};
  return {-1, e.symbol};
}

std::optional<SizeElements> FromTensor(const Tensor& t) {
  if (t.shape().rank() > 1 || t.elements() > kMostElements) return std::nullopt;
  SizeElements elements;
  for (int64_t i = 0; i < t.elements(); ++i) {
    if (t.dtype() == DType::kInt64) {
      elements.push_back(Number(t.data<int64_t>()[i]));
    } else if (t.dtype() == DType::kInt32) {
      elements.push_back(Number(t.data<int32_t>()[i]));
    } else if (t.dtype() == DType::kBool) {
      elements.push_back(Number(t.data<bool>()[i] ? 1 : 0));
    } else {
      return std::nullopt;
    }
  }
  return elements;
}

bool IsNumber(const SizeElement& e, int64_t n) { return e.number == n; }

std::optional<int64_t> Fitting(absl::int128 n) {
  if (n > std::numeric_limits<int64_t>::max() || n < std::numeric_limits<int64_t>::min()) {
    return std::nullopt;
  }
  return static_cast<int64_t>(n);
}

SizeElement Compute(const std::string& op, const SizeElement& a, const SizeElement& b) {
  if (a.number.has_value() && b.number.has_value()) {
    const absl::int128 x = *a.number, y = *b.number;
    if (op == "Add") return {Fitting(x + y)};
    if (op == "Sub") return {Fitting(x - y)};
    if (op == "Mul") return {Fitting(x * y)};
    if (op == "Min") return {Fitting(std::min(x, y))};
    if (op == "Max") return {Fitting(std::max(x, y))};
    if (op == "Equal") return Number(x == y ? 1 : 0);
    if (op == "Div" && x >= 0 && y > 0) return {Fitting(x / y)};
    return {};
  }
  if (op == "Equal") {
    if (a.known() && a == b) return Number(1);
    const bool negative = (a.number.has_value() && *a.number < 0 && !b.symbol.empty()) ||
                          (b.number.has_value() && *b.number < 0 && !a.symbol.empty());
    return negative ? Number(0) : SizeElement{};
  }
  if ((op == "Min" || op == "Max") && a == b) return a;
  if (op == "Sub" && a.known() && a == b) return Number(0);
  const bool plus = op == "Add" || op == "Sub", times = op == "Mul" || op == "Div";
  if ((plus && IsNumber(b, 0)) || (times && IsNumber(b, 1))) return a;
  if ((op == "Add" && IsNumber(a, 0)) || (op == "Mul" && IsNumber(a, 1))) return b;
  return {};
}

SizeElement Product(const SizeElements& elements) {
  SizeElement product = Number(1);
  for (const SizeElement& e : elements) product = Compute("Mul", product, e);
  return product;
}

// Element i, also of a list that is repeated.
const SizeElement& At(const SizeElements& list, size_t i) {
  return list.size() == 1 ? list[0] : list[i];
}

// Lists that broadcast to so many elements; 0: they do not.
size_t CommonLength(std::initializer_list<const SizeElements*> lists) {
  size_t length = 1;
  for (const SizeElements* list : lists) length = std::max(length, list->size());
  const bool fits = absl::c_all_of(
      lists, [&](const SizeElements* list) { return list->size() == 1 || list->size() == length; });
  return fits ? length : 0;
}

std::optional<std::vector<int64_t>> Numbers(const std::optional<SizeElements>& elements) {
  if (!elements.has_value()) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const SizeElement& e : *elements) {
    if (!e.number.has_value()) return std::nullopt;
    numbers.push_back(*e.number);
  }
  return numbers;
}

SizeElements DimsOf(const Node& node, const ValueType& type) {
  const int64_t rank = type.rank();
  const auto clamp = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
  SizeElements dims;
  for (int64_t i = clamp(node.Int("start", 0)); i < clamp(node.Int("end", rank)); ++i) {
    dims.push_back(FromDim(type.dims[i]));
  }
  return dims;
}

// Slice of a list: one start, end and step, all known.
std::optional<SizeElements> Cut(const SizeElements& list, int64_t start, int64_t end,
                                int64_t step) {
  const int64_t n = static_cast<int64_t>(list.size());
  if (step != 1) return std::nullopt;
  const auto clamp = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + n : v, 0, n); };
  start = clamp(start);
  end = std::max(start, clamp(end));
  return SizeElements(list.begin() + start, list.begin() + end);
}

std::optional<SizeElements> Pick(const SizeElements& list, const std::vector<int64_t>& indices) {
  const int64_t n = static_cast<int64_t>(list.size());
  SizeElements picked;
  for (int64_t i : indices) {
    if (i < -n || i >= n) return std::nullopt;
    picked.push_back(list[i < 0 ? i + n : i]);
  }
  return picked;
}

// The dimension that -1 stands for: what the others leave of the input's.
Dim Remaining(const std::vector<Dim>& input, const std::vector<Dim>& others) {
  absl::int128 whole = 1, taken = 1;
  std::vector<std::string> symbols;
  for (const Dim& dim : input) {
    if (dim.known()) {
      whole *= dim.value;
    } else if (dim.symbol.empty()) {
      return {};
    } else {
      symbols.push_back(dim.symbol);
    }
  }
  for (const Dim& dim : others) {
    if (dim.known()) {
      taken *= dim.value;
      continue;
    }
    auto it = absl::c_find(symbols, dim.symbol);
    if (dim.symbol.empty() || it == symbols.end()) return {};
    symbols.erase(it);
  }
  if (taken <= 0 || whole % taken != 0) return {};
  const std::optional<int64_t> rest = Fitting(whole / taken);
  if (symbols.empty() && rest.has_value()) return {*rest, ""};
  if (symbols.size() == 1 && rest == 1) return {-1, symbols[0]};
  return {};
}

std::vector<Dim> ReshapedDims(const Node& node, const ValueType* input,
                              const SizeElements& target) {
  std::vector<Dim> dims(target.size());
  const bool ranked = input != nullptr && input->has_rank;
  std::optional<size_t> open;
  std::vector<Dim> others;
  for (size_t i = 0; i < target.size(); ++i) {
    if (IsNumber(target[i], -1)) {
      open = i;
      continue;
    }
    if (IsNumber(target[i], 0) && node.Int("allowzero", 0) == 0) {
      if (ranked && i < input->dims.size()) dims[i] = input->dims[i];
    } else {
      dims[i] = ToDim(target[i]);
    }
    others.push_back(dims[i]);
  }
  if (open.has_value() && ranked) dims[*open] = Remaining(input->dims, others);
  return dims;
}

std::vector<Dim> ExpandedDims(const ValueType* input, const SizeElements& target) {
  if (input == nullptr || !input->has_rank) return {};
  const size_t rank = std::max(target.size(), input->dims.size());
  std::vector<Dim> dims(rank);
  for (size_t i = 0; i < rank; ++i) {
    const bool given = i + target.size() >= rank, there = i + input->dims.size() >= rank;
    const SizeElement want = given ? target[i + target.size() - rank] : Number(1);
    const SizeElement have =
        there ? FromDim(input->dims[i + input->dims.size() - rank]) : Number(1);
    if (IsNumber(want, 1) || (want.known() && want == have)) {
      dims[i] = ToDim(have);
    } else if (IsNumber(have, 1) || (want.number.has_value() && *want.number > 1)) {
      dims[i] = ToDim(want);
    } else if (have.number.has_value() && *have.number > 1) {
      dims[i] = ToDim(have);
    }
  }
  return dims;
}

// `dims` where nothing better is known of the type.
void Complete(const std::vector<Dim>& dims, ValueType* type) {
  if (!type->has_rank) {
    type->has_rank = true;
    type->dims = dims;
    return;
  }
  if (type->dims.size() != dims.size()) return;
  for (size_t i = 0; i < dims.size(); ++i) {
    Dim& dim = type->dims[i];
    if (!dim.known() && (dims[i].known() || dim.symbol.empty())) dim = dims[i];
  }
}

bool HoldsSizes(const ValueType& type) {
  const bool whole =
      type.dtype == DType::kInt64 || type.dtype == DType::kInt32 || type.dtype == DType::kBool;
  return whole && type.is_tensor() && type.has_rank && type.rank() <= 1;
}

// What 32 bits do not hold is another number there.
void ForgetLarge(SizeElement& e) {
  if (!e.number.has_value() || static_cast<int32_t>(*e.number) != *e.number) e = {};
}

// The elements of a ConstantOfShape.
std::optional<SizeElements> Repeated(const Node& node, const ValueType& type) {
  const Tensor* value = node.TensorAttribute("value");
  const std::optional<Shape> shape = type.StaticShape();
  if (value == nullptr || !shape.has_value() || shape->elements() > kMostElements) {
    return std::nullopt;
  }
  const std::optional<SizeElements> element = FromTensor(*value);
  if (!element.has_value() || element->size() != 1) return std::nullopt;
  return SizeElements(shape->elements(), (*element)[0]);
}

}  // namespace

std::optional<SizeElements> ShapeData::Of(const Node& node, absl::Span<const InputFact> inputs,
                                          size_t i) const {
  if (i >= node.inputs.size() || node.inputs[i].empty()) return std::nullopt;
  if (inputs[i].constant != nullptr) return FromTensor(*inputs[i].constant);
  auto it = known_.find(node.inputs[i]);
  return it == known_.end() ? std::nullopt : std::optional<SizeElements>(it->second.elements);
}

std::optional<Tensor> ShapeData::ConstantOf(const std::string& value) const {
  auto it = known_.find(value);
  if (it == known_.end() || it->second.type.dtype != DType::kInt64) return std::nullopt;
  const auto numbers = Numbers(it->second.elements);
  const std::optional<Shape> shape = it->second.type.StaticShape();
  if (!numbers.has_value() || !shape.has_value() || shape->rank() > 1 ||
      shape->elements() != static_cast<int64_t>(numbers->size())) {
    return std::nullopt;
  }
  Tensor tensor(DType::kInt64, *shape);
  absl::c_copy(*numbers, tensor.data<int64_t>());
  return tensor;
}

std::optional<SizeElements> ShapeData::Computed(const Node& node,
                                                absl::Span<const InputFact> inputs) const {
  const ValueType* type = inputs.empty() ? nullptr : inputs[0].type;
  if (node.Is("Shape") || node.Is("Size")) {
    if (type == nullptr || !type->has_rank) return std::nullopt;
    if (node.Is("Shape")) return DimsOf(node, *type);
    SizeElements dims;
    for (const Dim& dim : type->dims) dims.push_back(FromDim(dim));
    return SizeElements{Product(dims)};
  }
  const std::optional<SizeElements> first = Of(node, inputs, 0);
  if (node.Is("Concat")) {
    SizeElements joined;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const std::optional<SizeElements> part = Of(node, inputs, i);
      if (!part.has_value()) return std::nullopt;
      joined.insert(joined.end(), part->begin(), part->end());
    }
    return joined;
  }
  if (!first.has_value()) return std::nullopt;
  for (const char* op : {"Identity", "Cast", "Unsqueeze", "Squeeze", "Reshape"}) {
    if (node.Is(op)) return first;
  }
  if (node.Is("Gather")) {
    const auto indices = Numbers(Of(node, inputs, 1));
    return indices.has_value() ? Pick(*first, *indices) : std::nullopt;
  }
  if (node.Is("Slice")) {
    const auto starts = Numbers(Of(node, inputs, 1)), ends = Numbers(Of(node, inputs, 2));
    const auto steps = node.HasInput(4) ? Numbers(Of(node, inputs, 4)) : std::vector<int64_t>{1};
    const bool one = starts.has_value() && ends.has_value() && steps.has_value() &&
                     starts->size() == 1 && ends->size() == 1 && steps->size() == 1;
    return one ? Cut(*first, (*starts)[0], (*ends)[0], (*steps)[0]) : std::nullopt;
  }
  if (node.Is("ReduceProd") && node.inputs.size() == 1) return SizeElements{Product(*first)};
  const std::optional<SizeElements> second = Of(node, inputs, 1);
  if (!second.has_value()) return std::nullopt;
  if (node.Is("Where")) {
    const std::optional<SizeElements> third = Of(node, inputs, 2);
    const auto conditions = Numbers(first);
    if (!third.has_value() || !conditions.has_value()) return std::nullopt;
    SizeElements chosen(CommonLength({&*first, &*second, &*third}));
    for (size_t i = 0; i < chosen.size(); ++i) {
      chosen[i] = IsNumber(At(*first, i), 0) ? At(*third, i) : At(*second, i);
    }
    return chosen.empty() ? std::nullopt : std::optional(chosen);
  }
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Min", "Max", "Equal"}) {
    if (!node.Is(op) || node.inputs.size() != 2) continue;
    SizeElements results(CommonLength({&*first, &*second}));
    for (size_t i = 0; i < results.size(); ++i) {
      results[i] = Compute(op, At(*first, i), At(*second, i));
    }
    return results.empty() ? std::nullopt : std::optional(results);
  }
  return std::nullopt;
}

void ShapeData::Visit(const Node& node, absl::Span<const InputFact> inputs,
                      std::vector<ValueType>* types) {
  if (!node.domain.empty() || types->empty() || node.outputs[0].empty()) return;
  ValueType& type = (*types)[0];
  const int shape_input = node.Is("Reshape") || node.Is("Expand") ? 1
                          : node.Is("ConstantOfShape")            ? 0
                                                                  : -1;
  if (shape_input >= 0) {
    if (const auto target = Of(node, inputs, shape_input); target.has_value()) {
      std::vector<Dim> dims;
      if (node.Is("Reshape")) dims = ReshapedDims(node, inputs[0].type, *target);
      if (node.Is("Expand")) dims = ExpandedDims(inputs[0].type, *target);
      if (node.Is("ConstantOfShape")) absl::c_transform(*target, std::back_inserter(dims), ToDim);
      if (!dims.empty()) Complete(dims, &type);
    }
  }
  if (!HoldsSizes(type)) return;
  std::optional<SizeElements> elements =
      node.Is("ConstantOfShape") ? Repeated(node, type) : Computed(node, inputs);
  if (!elements.has_value() || elements->size() > kMostElements) return;
  if (type.dtype == DType::kInt32) absl::c_for_each(*elements, ForgetLarge);
  if (type.rank() == 1 && !type.dims[0].known()) {
    type.dims[0] = {static_cast<int64_t>(elements->size()), ""};
  }
  known_[node.outputs[0]] = {*std::move(elements), type};
}

}  // namespace onward
