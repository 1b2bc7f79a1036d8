// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/feeding.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"

namespace onward {
namespace {

std::string ShapeText(const std::vector<Dim>& dims) {
  return absl::StrCat("[",
                      absl::StrJoin(dims, ", ",
                                    [](std::string* out, const Dim& d) {
                                      absl::StrAppend(out, d.known() ? absl::StrCat(d.value) : "?");
                                    }),
                      "]");
}

// [C, H, W] or [H, W, C], by the axis of 1 or 3 channels; where the channels are.
std::optional<size_t> ChannelAxis(const std::vector<int64_t>& sizes) {
  if (sizes.size() != 3) return std::nullopt;
  for (const size_t axis : {size_t{0}, size_t{2}}) {
    if (sizes[axis] == 1 || sizes[axis] == 3) return axis;
  }
  return std::nullopt;
}

// What helps where an example has another shape than the input wants.
std::string Remedy(const FieldInfo& field, const std::vector<Dim>& wanted) {
  std::vector<int64_t> sizes;
  for (const Dim& d : wanted) sizes.push_back(d.known() ? d.value : -1);
  const std::vector<int64_t> given(field.shape.begin(), field.shape.end());
  if (field.is_label) {
    if (given.size() == sizes.size() && !given.empty()) {
      return "; where the classes are on the last axis of the output, the loss has to say axis=-1";
    }
    if (given.size() == sizes.size() + 1) {
      return "; a number for each class is a label of --loss cross_entropy:soft_labels=1";
    }
    if (given.size() + 1 == sizes.size()) {
      return "; the number of a class is a label of --loss cross_entropy";
    }
    return "; is it the label that the loss is for?";
  }
  const std::optional<size_t> from = ChannelAxis(given), to = ChannelAxis(sizes);
  if (from.has_value() && to.has_value()) {
    const size_t first = *to == 0 ? 1 : 0;
    const bool channels = given[*from] != sizes[*to];
    std::vector<std::string> options;
    if (sizes[first] > 0 && sizes[first + 1] > 0) {
      options.push_back(absl::StrCat("size=", sizes[first], "x", sizes[first + 1]));
    }
    if (channels) options.push_back(absl::StrCat("channels=", sizes[*to]));
    if (!options.empty()) {
      return absl::StrCat("; bring the pictures to that size: ?", absl::StrJoin(options, "&"));
    }
  }
  if (given.size() == 1 && sizes.size() == 1 && sizes[0] > 0) {
    return absl::StrCat("; the table has ", given[0], given[0] == 1 ? " column" : " columns",
                        " beside the label, the model takes ", sizes[0],
                        given[0] > sizes[0] ? ": leave some out with ?drop=NAME,NAME"
                                            : ": is it the table the model is for?");
  }
  const bool open = std::count(sizes.begin(), sizes.end(), -1) > 0;
  return open ? "; say which with ?shape=" : "; no other order of its numbers fits";
}

// The example shape to feed: the input's own, its unknown sizes filled in from
// the data where that is possible.
absl::StatusOr<std::vector<int64_t>> TargetShape(const FieldInfo& field, const NamedType& input) {
  const std::vector<int64_t> given(field.shape.begin(), field.shape.end());
  if (!input.type.has_rank || input.type.rank() == 0) return given;
  const std::vector<Dim> wanted(input.type.dims.begin() + 1, input.type.dims.end());
  int64_t known = 1, unknown = 0;
  for (const Dim& d : wanted) (d.known() ? known *= d.value : ++unknown);
  std::vector<int64_t> shape;
  const bool same_rank = wanted.size() == given.size();
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].known())
      shape.push_back(wanted[i].value);
    else if (same_rank)
      shape.push_back(given[i]);
    else if (unknown == 1 && known > 0 && field.shape.elements() % known == 0)
      shape.push_back(field.shape.elements() / known);
    else
      shape.push_back(-1);
  }
  int64_t total = 1;
  for (int64_t d : shape) total *= d;
  if (total == field.shape.elements() && std::count(shape.begin(), shape.end(), -1) == 0) {
    return shape;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "an example of '", field.name, "' is ", field.shape.ToString(), ", but input '", input.name,
      "' takes ", ShapeText(wanted), " per example", Remedy(field, wanted)));
}

// Channels first <-> last, where the sizes are those of the other order.
std::vector<int> ChannelPermutation(const Shape& given, const std::vector<int64_t>& wanted) {
  if (given.rank() != static_cast<int>(wanted.size()) || given.rank() < 3) return {};
  if (std::equal(wanted.begin(), wanted.end(), given.begin())) return {};
  std::vector<int> to_last, to_first = {given.rank() - 1};
  for (int i = 1; i < given.rank(); ++i) to_last.push_back(i);
  to_last.push_back(0);
  for (int i = 0; i + 1 < given.rank(); ++i) to_first.push_back(i);
  for (const std::vector<int>& p : {to_last, to_first}) {
    bool fits = true;
    for (size_t i = 0; i < p.size(); ++i) fits &= given[p[i]] == wanted[i];
    if (fits) return p;
  }
  return {};
}

Tensor Permuted(const Tensor& batch, const std::vector<int>& permutation) {
  const Shape& in = batch.shape();
  Shape out{in[0]};
  for (int p : permutation) out.push_back(in[p + 1]);
  Tensor result(batch.dtype(), out);
  const size_t width = DTypeBits(batch.dtype()) / 8;
  const auto strides = in.Strides();
  const int rank = out.rank();
  std::vector<int64_t> index(rank, 0);
  for (int64_t i = 0; i < result.elements(); ++i) {
    int64_t from = index[0] * strides[0];
    for (int d = 1; d < rank; ++d) from += index[d] * strides[permutation[d - 1] + 1];
    std::memcpy(result.data<char>() + i * width, batch.data<char>() + from * width, width);
    for (int d = rank - 1; d >= 0 && ++index[d] == out[d]; --d) index[d] = 0;
  }
  return result;
}

}  // namespace

absl::StatusOr<Feeding> Feeding::Create(const Dataset& data, const std::vector<NamedType>& inputs,
                                        const std::string& label) {
  Feeding feeding;
  feeding.source_ = data.source();
  const absl::Status matched = feeding.Match(data, inputs, label);
  if (matched.ok()) return feeding;
  return absl::Status(matched.code(),
                      absl::StrCat(matched.message(), " (data: ", feeding.source_, ")"));
}

absl::Status Feeding::Match(const Dataset& data, const std::vector<NamedType>& inputs,
                            const std::string& label) {
  const std::vector<FieldInfo> fields = data.fields();
  std::vector<bool> used(fields.size(), false);
  std::vector<const NamedType*> open;
  auto route = [&](size_t field, const NamedType& input) -> absl::Status {
    std::vector<int64_t> shape;
    if (!fields[field].varies) {
      ONWARD_ASSIGN_OR_RETURN(shape, TargetShape(fields[field], input));
    }
    Route r{static_cast<int>(field),
            input.name,
            input.type.dtype == DType::kUndefined ? fields[field].dtype : input.type.dtype,
            shape,
            ChannelPermutation(fields[field].shape, shape),
            fields[field].varies};
    routes_.push_back(std::move(r));
    if (fields[field].is_label) label_input_ = input.name;
    used[field] = true;
    return absl::OkStatus();
  };
  const auto labels =
      std::find_if(fields.begin(), fields.end(), [](const FieldInfo& f) { return f.is_label; });
  for (const NamedType& input : inputs) {
    auto it = std::find_if(fields.begin(), fields.end(),
                           [&](const FieldInfo& f) { return f.name == input.name; });
    if (it != fields.end()) {
      ONWARD_RETURN_IF_ERROR(route(it - fields.begin(), input));
    } else if (input.name == label) {
      if (labels == fields.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("the data has no labels for input '", label, "'"));
      }
      ONWARD_RETURN_IF_ERROR(route(labels - fields.begin(), input));
    } else {
      open.push_back(&input);
    }
  }
  std::vector<size_t> left;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (!used[i] && !fields[i].is_label && !fields[i].by_name) left.push_back(i);
  }
  if (open.size() == 1 && left.size() == 1) {
    ONWARD_RETURN_IF_ERROR(route(left[0], *open[0]));
  } else if (!open.empty()) {
    std::vector<std::string> names;
    for (const NamedType* in : open) names.push_back(in->name);
    return absl::InvalidArgumentError(
        absl::StrCat("the data has no field for input ", absl::StrJoin(names, ", "), " (",
                     Describe(data), "); an .npz file names its arrays like the inputs"));
  }
  return absl::OkStatus();
}

int Feeding::FieldOf(const std::string& input) const {
  for (const Route& route : routes_) {
    if (route.input == input) return route.field;
  }
  return -1;
}

absl::StatusOr<TensorMap> Feeding::Feeds(const std::vector<Tensor>& batch) const {
  TensorMap feeds;
  for (const Route& r : routes_) {
    Tensor t = batch[r.field];
    if (!r.permutation.empty()) t = Permuted(t, r.permutation);
    if (!r.varies) {
      Shape shape{t.shape().rank() == 0 ? 1 : t.shape()[0]};
      for (int64_t d : r.shape) shape.push_back(d);
      t = t.Reshaped(shape);
    }
    if (t.dtype() != r.dtype) {
      auto converted = ConvertTensor(t, r.dtype);
      if (!converted.ok()) {
        return Annotate(converted.status(), absl::StrCat(source_, ", for input '", r.input, "'"));
      }
      t = *std::move(converted);
    }
    feeds[r.input] = std::move(t);
  }
  return feeds;
}

}  // namespace onward
