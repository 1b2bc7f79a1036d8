// SPDX-License-Identifier: Apache-2.0
#include "core/graph/constraints/rules.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_join.h"

namespace onward::constraints {
namespace {

// Longer lists name no axes, sizes or counts.
constexpr int64_t kMaxListed = 4096;

// "[-3, 2]" for axes of a tensor of rank 3; any tensor's where it is not known.
struct AxisBounds {
  int64_t low, high;
  AxisBounds(int rank, int grow, bool end)
      : low(-(rank < 0 ? kMaxRank : rank) - grow),
        high((rank < 0 ? kMaxRank : rank) + grow - (end ? 0 : 1)) {}
  bool Holds(int64_t axis) const { return axis >= low && axis <= high; }
};

void CheckAxis(Subject& s, const std::string& what, int64_t axis, int rank, int grow, bool end) {
  const AxisBounds bounds(rank, grow, end);
  if (bounds.Holds(axis)) return;
  if (bounds.high < bounds.low) {
    s.Fail(what, " is ", axis, ", but its input is a scalar and has no axes");
  } else {
    s.Fail(what, " is ", axis, ", outside [", bounds.low, ", ", bounds.high, "]",
           rank < 0 ? ", which no tensor has" : absl::StrCat(" for an input of rank ", rank));
  }
}

void CheckAxes(Subject& s, const std::string& what, const std::vector<int64_t>& axes, int rank,
               int grow) {
  std::vector<int64_t> seen;
  for (int64_t axis : axes) {
    const AxisBounds bounds(rank, grow, false);
    if (!bounds.Holds(axis)) return CheckAxis(s, what, axis, rank, grow, false);
    if (rank >= 0 && axis < 0) axis += rank + grow;
    if (std::find(seen.begin(), seen.end(), axis) != seen.end()) {
      return s.Fail(what, " has [", absl::StrJoin(axes, ", "), "], which names an axis twice");
    }
    seen.push_back(axis);
  }
}

template <typename T>
void Append(const Tensor& t, std::vector<double>* values) {
  for (int64_t i = 0; i < t.elements(); ++i) values->push_back(static_cast<double>(t.data<T>()[i]));
}

}  // namespace

const ValueType* Subject::Type(int input) const {
  if (!Has(input) || input >= static_cast<int>(inputs_.size())) return nullptr;
  const ValueType* type = inputs_[input].type;
  return type != nullptr && type->is_tensor() ? type : nullptr;
}

int Subject::Rank(int input) const {
  const ValueType* type = Type(input);
  return type == nullptr ? -1 : type->rank();
}

int64_t Subject::Dim(int input, int axis) const {
  const int rank = Rank(input);
  if (axis < 0) axis += rank;
  if (rank < 0 || axis < 0 || axis >= rank) return -1;
  return inputs_[input].type->dims[axis].value;
}

std::optional<std::vector<int64_t>> Subject::Constant(int input) const {
  if (!Has(input) || input >= static_cast<int>(inputs_.size())) return std::nullopt;
  const Tensor* t = inputs_[input].constant;
  if (t == nullptr || t->elements() > kMaxListed) return std::nullopt;
  std::vector<int64_t> values;
  if (t->dtype() == DType::kInt64) {
    values.assign(t->data<int64_t>(), t->data<int64_t>() + t->elements());
  } else if (t->dtype() == DType::kInt32) {
    values.assign(t->data<int32_t>(), t->data<int32_t>() + t->elements());
  } else {
    return std::nullopt;
  }
  return values;
}

std::optional<std::vector<double>> Subject::ConstantNumbers(int input) const {
  if (!Has(input) || input >= static_cast<int>(inputs_.size())) return std::nullopt;
  const Tensor* t = inputs_[input].constant;
  if (t == nullptr || t->elements() > kMaxListed) return std::nullopt;
  std::vector<double> values;
  switch (t->dtype()) {
    case DType::kFloat: Append<float>(*t, &values); return values;
    case DType::kDouble: Append<double>(*t, &values); return values;
    case DType::kInt64: Append<int64_t>(*t, &values); return values;
    case DType::kInt32: Append<int32_t>(*t, &values); return values;
    default: return std::nullopt;
  }
}

int64_t Subject::Length(int input) const {
  if (Rank(input) == 0) return 1;
  return Rank(input) == 1 ? Dim(input, 0) : -1;
}

std::optional<std::vector<int64_t>> Subject::List(std::string_view attribute, int input) const {
  if (node.Has(attribute)) return node.Ints(attribute);
  return input < 0 ? std::nullopt : Constant(input);
}

std::optional<int64_t> Subject::Number(std::string_view attribute) const {
  auto it = node.attributes.find(std::string(attribute));
  if (it == node.attributes.end()) return std::nullopt;
  const int64_t* value = std::get_if<int64_t>(&it->second.value);
  return value == nullptr || !it->second.ref.empty() ? std::nullopt : std::optional(*value);
}

void AddRows(Table& table, std::initializer_list<const char*> operators, const Rules& rules) {
  for (const char* op : operators) {
    Rules& row = table[op];
    row.insert(row.end(), rules.begin(), rules.end());
  }
}

Rule Axis(AxisRange r) {
  return [r = std::move(r)](Subject& s) {
    std::optional<int64_t> axis = s.Number(r.attribute);
    if (!axis.has_value()) axis = r.otherwise;
    if (axis.has_value()) CheckAxis(s, r.attribute, *axis, s.Rank(r.input), r.grow, r.end);
  };
}

Rule AxisInput(int axis, int input, int grow) {
  return [=](Subject& s) {
    const auto values = s.Constant(axis);
    if (!values.has_value()) return;
    if (values->size() != 1) {
      return s.Fail("input ", axis, ", the axis, has ", values->size(), " elements, not one");
    }
    // Exporters declare vectors as scalars; the kernel sees what is fed.
    const int rank = s.Rank(input) == 0 ? 1 : s.Rank(input);
    CheckAxis(s, absl::StrCat("input ", axis, ", the axis,"), (*values)[0], rank, grow, false);
  };
}

Rule Axes(const char* attribute, int axes_input, int input) {
  return [=, name = std::string(attribute)](Subject& s) {
    if (const auto axes = s.List(name, axes_input)) CheckAxes(s, name, *axes, s.Rank(input), 0);
  };
}

Rule NewAxes(const char* attribute, int axes_input) {
  return [=, name = std::string(attribute)](Subject& s) {
    const auto axes = s.List(name, axes_input);
    if (!axes.has_value()) return;
    if (axes->size() > kMaxRank) {
      return s.Fail(name, " lists ", axes->size(), " axes; at most ", kMaxRank, " are supported");
    }
    CheckAxes(s, name, *axes, s.Rank(0), static_cast<int>(axes->size()));
  };
}

Rule Permutation(const char* attribute) {
  return [name = std::string(attribute)](Subject& s) {
    if (!s.node.Has(name)) return;
    const std::vector<int64_t> perm = s.node.Ints(name);
    const int rank = s.Rank(0) < 0 ? static_cast<int>(perm.size()) : s.Rank(0);
    if (IsPermutation(perm, rank)) return;
    s.Fail(name, " is [", absl::StrJoin(perm, ", "), "], no permutation of the ", rank,
           " axes of its input");
  };
}

Rule OneOf(const char* attribute, std::vector<std::string> allowed) {
  return [name = std::string(attribute), allowed = std::move(allowed)](Subject& s) {
    if (!s.node.Has(name)) return;
    const std::string value = s.node.String(name, "");
    if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return;
    s.Fail(name, " is '", value.substr(0, 40), "', expected one of ", absl::StrJoin(allowed, ", "));
  };
}

Rule OneOfNumbers(const char* attribute, std::vector<int64_t> allowed) {
  return [name = std::string(attribute), allowed = std::move(allowed)](Subject& s) {
    const std::optional<int64_t> value = s.Number(name);
    if (!value.has_value()) return;
    if (std::find(allowed.begin(), allowed.end(), *value) != allowed.end()) return;
    s.Fail(name, " is ", *value, ", expected one of ", absl::StrJoin(allowed, ", "));
  };
}

Rule InRange(const char* attribute, int64_t low, int64_t high) {
  return [=, name = std::string(attribute)](Subject& s) {
    const std::optional<int64_t> value = s.Number(name);
    if (!value.has_value() || (*value >= low && *value <= high)) return;
    s.Fail(name, " is ", *value, ", expected a number in [", low, ", ", high, "]");
  };
}

Rule EachInRange(const char* attribute, int64_t low, int64_t high) {
  return [=, name = std::string(attribute)](Subject& s) {
    for (int64_t value : s.node.Ints(name)) {
      if (value >= low && value <= high) continue;
      return s.Fail(name, " holds ", value, ", expected numbers in [", low, ", ", high, "]");
    }
  };
}

Rule FloatAbove(const char* attribute, float low) {
  return [=, name = std::string(attribute)](Subject& s) {
    const float value = s.node.Float(name, low + 1);
    if (value > low) return;
    s.Fail(name, " is ", value, ", expected a number above ", low);
  };
}

Rule ElementType(const char* attribute) {
  return [name = std::string(attribute)](Subject& s) {
    const std::optional<int64_t> value = s.Number(name);
    const bool known = !value.has_value() || (*value > 0 && *value <= kLargest &&
                                              IsKnownDType(static_cast<int32_t>(*value)));
    if (!known) s.Fail(name, " is ", *value, ", which is no element type");
  };
}

Rule FloatingType(const char* attribute) {
  return [name = std::string(attribute)](Subject& s) {
    const std::optional<int64_t> value = s.Number(name);
    if (!value.has_value()) return;
    if (*value > 0 && *value <= kLargest && IsFloating(static_cast<DType>(*value))) return;
    s.Fail(name, " is ", *value,
           ", expected float (1), float16 (10), double (11) or bfloat16 (16)");
  };
}

Rule SameLength(std::vector<const char*> attributes) {
  return [attributes = std::move(attributes)](Subject& s) {
    const char* first = nullptr;
    size_t expected = 0;
    for (const char* name : attributes) {
      auto it = s.node.attributes.find(name);
      if (it == s.node.attributes.end()) continue;
      const size_t n = std::visit(
          [](const auto& v) -> size_t {
            if constexpr (requires { v.elements(); }) {
              return static_cast<size_t>(v.elements());
            } else if constexpr (requires { v.size(); }) {
              return v.size();
            } else {
              return 1;
            }
          },
          it->second.value);
      if (first == nullptr) {
        first = name;
        expected = n;
      } else if (n != expected) {
        s.Fail(name, " has ", n, " values, but ", first, " has ", expected);
      }
    }
  };
}

Rule RankIs(int input, int rank) {
  return [=](Subject& s) { ExpectRank(s, input, rank); };
}

Rule RankAtLeast(int input, int rank) {
  return [=](Subject& s) {
    if (s.Rank(input) < 0 || s.Rank(input) >= rank) return;
    s.Fail("input ", input, " has rank ", s.Rank(input), ", expected at least ", rank);
  };
}

Rule SameRank(int a, int b) {
  return [=](Subject& s) {
    if (s.Rank(a) < 0 || s.Rank(b) < 0 || s.Rank(a) == s.Rank(b)) return;
    s.Fail("inputs ", a, " and ", b, " have ranks ", s.Rank(a), " and ", s.Rank(b),
           ", expected the same");
  };
}

Rule Scalar(int input) {
  return [=](Subject& s) {
    for (int axis = 0; axis < s.Rank(input); ++axis) {
      if (s.Dim(input, axis) < 0 || s.Dim(input, axis) == 1) continue;
      return s.Fail("input ", input, " has more or fewer elements than one");
    }
  };
}

Rule ForEachAxis(int list, int input, int64_t low, int64_t high) {
  return [=](Subject& s) {
    const int rank = s.Rank(input);
    if (rank >= 0 && s.Length(list) >= 0 && s.Length(list) != rank) {
      return s.Fail("input ", list, " has ", s.Length(list), " values, but input ", input, " has ",
                    rank, " axes");
    }
    for (int64_t value : s.Constant(list).value_or(std::vector<int64_t>())) {
      if (value >= low && value <= high) continue;
      return s.Fail("input ", list, " holds ", value, ", expected numbers of at least ", low);
    }
  };
}

void ExpectRank(Subject& s, int input, int rank) {
  if (s.Rank(input) < 0 || s.Rank(input) == rank) return;
  s.Fail("input ", input, " has rank ", s.Rank(input), ", expected ", rank);
}

namespace {

std::string DimsText(absl::Span<const int64_t> dims) {
  const auto text = [](std::string* out, int64_t dim) {
    absl::StrAppend(out, dim < 0 ? "?" : absl::StrCat(dim));
  };
  return absl::StrCat("[", absl::StrJoin(dims, ", ", text), "]");
}

}  // namespace

void ExpectShape(Subject& s, int input, const char* what, absl::Span<const int64_t> dims) {
  const int rank = s.Rank(input);
  if (rank < 0) return;
  bool fits = rank == static_cast<int>(dims.size());
  for (int i = 0; fits && i < rank; ++i) {
    fits = dims[i] < 0 || s.Dim(input, i) < 0 || dims[i] == s.Dim(input, i);
  }
  if (fits) return;
  s.Fail("input ", input, ", ", what, ", is ", DimsText(DimsOf(s, input)), ", expected ",
         DimsText(dims));
}

void ExpectBroadcast(Subject& s, int input, const char* what, absl::Span<const int64_t> dims) {
  const int rank = s.Rank(input), wanted = static_cast<int>(dims.size());
  bool fits = rank <= wanted;
  for (int i = 1; fits && i <= rank; ++i) {
    const int64_t dim = s.Dim(input, rank - i), to = dims[wanted - i];
    fits = dim < 0 || to < 0 || dim == 1 || dim == to;
  }
  if (fits) return;
  s.Fail("input ", input, ", ", what, ", is ", DimsText(DimsOf(s, input)),
         ", which is not broadcast to ", DimsText(dims));
}

std::vector<int64_t> DimsOf(const Subject& s, int input) {
  std::vector<int64_t> dims;
  for (int i = 0; i < s.Rank(input); ++i) dims.push_back(s.Dim(input, i));
  return dims;
}

}  // namespace onward::constraints
