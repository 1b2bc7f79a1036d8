// SPDX-License-Identifier: Apache-2.0
// DictVectorizer, CastMap and ZipMap: dictionaries in and out.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/ops/ml/ml.h"
#include "core/ops/sequence/value_kernel.h"

namespace onward {
namespace {

// More would be no dictionary of anybody's.
constexpr int64_t kMostPlaces = int64_t{1} << 28;

absl::StatusOr<const Map*> MapAtInput(const Node& node, const ValueCall& call) {
  if (HasInput(call, 0) && call.inputs[0]->map() != nullptr) return call.inputs[0]->map();
  return NodeError(node, absl::StrCat("takes a map, got ",
                                      HasInput(call, 0) ? call.inputs[0]->ToString() : "nothing"));
}

// The values of a map as one tensor; numbers and strings are held as scalars.
absl::StatusOr<Tensor> ValuesOf(const Node& node, const Map& map) {
  const int64_t n = static_cast<int64_t>(map.values.items.size());
  const DType dtype = map.values.element.leaf();
  Tensor values(dtype == DType::kUndefined ? DType::kFloat : dtype, Shape{n});
  for (int64_t i = 0; i < n; ++i) {
    const Tensor* item = map.values.items[i].tensor();
    if (item == nullptr || item->elements() != 1 || item->dtype() != values.dtype()) {
      return NodeError(node, "takes maps to single numbers or strings");
    }
    if (dtype == DType::kString) {
      values.data<std::string>()[i] = *item->data<std::string>();
    } else {
      std::copy_n(static_cast<const char*>(item->raw()), item->bytes(),
                  static_cast<char*>(values.raw()) + i * static_cast<int64_t>(item->bytes()));
    }
  }
  return values;
}

// Where the vocabulary has each key of the map; -1: nowhere.
std::vector<int64_t> PlacesOf(const Node& node, const Tensor& keys) {
  std::vector<int64_t> places;
  if (keys.dtype() == DType::kString) {
    absl::flat_hash_map<std::string, int64_t> at;
    for (const std::string& word : node.Strings("string_vocabulary")) {
      at.try_emplace(word, static_cast<int64_t>(at.size()));
    }
    for (const std::string& key : keys.values<std::string>()) {
      places.push_back(at.contains(key) ? at[key] : -1);
    }
    return places;
  }
  absl::flat_hash_map<int64_t, int64_t> at;
  int64_t next = 0;
  for (const int64_t number : node.Ints("int64_vocabulary")) at.try_emplace(number, next++);
  const absl::StatusOr<std::vector<int64_t>> numbers = ToInts(keys);
  for (const int64_t key : numbers.ok() ? *numbers : std::vector<int64_t>()) {
    places.push_back(at.contains(key) ? at[key] : -1);
  }
  return places;
}

absl::Status DictVectorizer(const Node& node, const ValueCall& call) {
  ONWARD_ASSIGN_OR_RETURN(const Map* map, MapAtInput(node, call));
  ONWARD_ASSIGN_OR_RETURN(const Tensor values, ValuesOf(node, *map));
  const bool text = map->keys.dtype() == DType::kString;
  const int64_t width = static_cast<int64_t>(text ? node.Strings("string_vocabulary").size()
                                                  : node.Ints("int64_vocabulary").size());
  Tensor out = Tensor::Zeros(values.dtype(), Shape{1, width});
  const std::vector<int64_t> places = PlacesOf(node, map->keys);
  const size_t size =
      values.dtype() == DType::kString ? 0 : values.bytes() / std::max<size_t>(1, places.size());
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] < 0) continue;
    if (values.dtype() == DType::kString) {
      out.data<std::string>()[places[i]] = values.data<std::string>()[i];
    } else {
      std::copy_n(static_cast<const char*>(values.raw()) + i * size, size,
                  static_cast<char*>(out.raw()) + static_cast<size_t>(places[i]) * size);
    }
  }
  return Give(call, 0, std::move(out));
}

// A value of the map, and what stands where it has none, as the type that is asked for.
absl::Status CastInto(const Node& node, const Tensor& values, int64_t i, int64_t place,
                      Tensor* out) {
  const bool text = values.dtype() == DType::kString;
  if (out->dtype() == DType::kString) {
    out->data<std::string>()[place] =
        text ? values.data<std::string>()[i] : absl::StrCat(values.data<float>()[i]);
    return absl::OkStatus();
  }
  float number = text ? 0 : values.data<float>()[i];
  if (text && !absl::SimpleAtof(values.data<std::string>()[i], &number)) {
    return NodeError(node, absl::StrCat("'", values.data<std::string>()[i], "' is no number"));
  }
  if (out->dtype() == DType::kFloat) {
    out->data<float>()[place] = number;
  } else if (number >= -0x1p63f && number < 0x1p63f) {
    out->data<int64_t>()[place] = static_cast<int64_t>(number);
  } else {
    return NodeError(node, absl::StrCat(number, " fits no int64"));
  }
  return absl::OkStatus();
}

// DENSE: the values in the order of the keys. SPARSE: each at the place that its key says.
absl::Status CastMap(const Node& node, const ValueCall& call) {
  ONWARD_ASSIGN_OR_RETURN(const Map* map, MapAtInput(node, call));
  ONWARD_ASSIGN_OR_RETURN(const Tensor values, ValuesOf(node, *map));
  if (values.dtype() != DType::kFloat && values.dtype() != DType::kString) {
    return NodeError(node, "takes maps to float or string");
  }
  ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> keys, ToInts(map->keys));
  const std::string to = node.String("cast_to", "TO_FLOAT");
  const DType dtype = to == "TO_STRING"  ? DType::kString
                      : to == "TO_INT64" ? DType::kInt64
                                         : DType::kFloat;
  const bool sparse = node.String("map_form", "DENSE") == "SPARSE";
  const int64_t width = sparse ? node.Int("max_map", 1) : static_cast<int64_t>(keys.size());
  if (width < 0 || width > kMostPlaces) {
    return NodeError(node, absl::StrCat("max_map is ", width, "; at most ", kMostPlaces, " is"));
  }
  Tensor out = Tensor::Zeros(dtype, Shape{1, width});
  if (dtype == DType::kString) {
    std::fill_n(out.data<std::string>(), width, std::string("0.f"));
  }
  std::vector<std::pair<int64_t, int64_t>> order;  // (key, where it stands in the map)
  for (size_t i = 0; i < keys.size(); ++i) order.emplace_back(keys[i], static_cast<int64_t>(i));
  std::sort(order.begin(), order.end());
  int64_t next = 0;
  for (const auto& [key, i] : order) {
    if (sparse && key < 0) {
      return NodeError(node, absl::StrCat("the key ", key, " is no place"));
    }
    const int64_t place = sparse ? key : next++;
    if (place < width) ONWARD_RETURN_IF_ERROR(CastInto(node, values, i, place, &out));
  }
  return Give(call, 0, std::move(out));
}

absl::Status ZipMap(const Node& node, const ValueCall& call) {
  ONWARD_ASSIGN_OR_RETURN(const Tensor* x, TensorAtInput(node, call, 0));
  ONWARD_ASSIGN_OR_RETURN(const Rows rows, RowsOf(node, x->shape()));
  if (x->dtype() != DType::kFloat) return NodeError(node, "takes float");
  const ClassLabels labels = ClassLabelsOf(node, "classlabels_int64s", "classlabels_strings");
  if (labels.size() != rows.width) {
    return NodeError(node,
                     absl::StrCat("has ", labels.size(), " labels for ", rows.width, " columns"));
  }
  const Shape one{labels.size()};
  const Tensor keys = labels.text()
                          ? Tensor::FromValues<std::string>(one, absl::MakeConstSpan(labels.names))
                          : Tensor::FromValues<int64_t>(one, absl::MakeConstSpan(labels.numbers));
  const ValueType number = ValueType::Of(DType::kFloat, {});
  Sequence sequence;
  sequence.element = ValueType::Holding(ValueType::Kind::kMap, number);
  sequence.element.dtype = keys.dtype();
  for (int64_t r = 0; r < rows.count; ++r) {
    Map map{keys, {number, {}}};
    for (int64_t i = 0; i < rows.width; ++i) {
      map.values.items.push_back(Tensor::Scalar<float>(x->data<float>()[r * rows.width + i]));
    }
    sequence.items.push_back(std::move(map));
  }
  return Give(call, 0, std::move(sequence));
}

}  // namespace

void RegisterMapKernels(KernelTable& table) {
  AddOnValues(table, "DictVectorizer", DictVectorizer, kMlDomain);
  AddOnValues(table, "CastMap", CastMap, kMlDomain);
  AddOnValues(table, "ZipMap", ZipMap, kMlDomain);
}

}  // namespace onward
