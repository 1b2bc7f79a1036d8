// SPDX-License-Identifier: Apache-2.0
// LabelEncoder, CategoryMapper and OneHotEncoder: tables from keys to values.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/graph/attribute_lists.h"
#include "core/ops/ml/ml.h"
#include "core/ops/movement/movement.h"

namespace onward {
namespace {

// A list in an attribute as a tensor: x_floats, x_int64s, x_strings or x_tensor.
std::optional<Tensor> ListOf(const Node& node, const std::string& name) {
  if (const Tensor* t = node.TensorAttribute(name + "_tensor")) return *t;
  const auto from = [](const auto& values) {
    using T = typename std::decay_t<decltype(values)>::value_type;
    return Tensor::FromValues<T>(Shape{static_cast<int64_t>(values.size())},
                                 absl::MakeConstSpan(values));
  };
  if (node.Has(name + "_floats")) return from(FloatsOf(node, name + "_floats"));
  if (node.Has(name + "_int64s")) return from(node.Ints(name + "_int64s"));
  if (node.Has(name + "_strings")) return from(node.Strings(name + "_strings"));
  return std::nullopt;
}

// The value of a key that is not in the table.
Tensor DefaultOf(const Node& node, DType dtype) {
  if (const Tensor* t = node.TensorAttribute("default_tensor")) {
    if (t->dtype() == dtype && t->elements() == 1) return t->Reshaped({});
  }
  switch (dtype) {
    case DType::kString: return Tensor::Scalar(node.String("default_string", "_Unused"));
    case DType::kFloat: return Tensor::Scalar(node.Float("default_float", -0.0f));
    case DType::kInt64: return Tensor::Scalar(node.Int("default_int64", -1));
    default: return ScalarOf(dtype, dtype == DType::kDouble ? -0.0 : -1);
  }
}

struct Table {
  Tensor keys, values, otherwise;
};

// Where each key stands; of a key that comes twice, the first.
template <typename Key>
class Places {
 public:
  explicit Places(const Tensor& keys) {
    const auto list = keys.values<Key>();
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i] != list[i]) {
        if (nan_ < 0) nan_ = static_cast<int64_t>(i);
      } else {
        places_.try_emplace(list[i], static_cast<int64_t>(i));
      }
    }
  }
  // -1: nowhere.
  int64_t Of(const Key& key) const {
    if (key != key) return nan_;
    auto it = places_.find(key);
    return it == places_.end() ? -1 : it->second;
  }

 private:
  absl::flat_hash_map<Key, int64_t> places_;
  int64_t nan_ = -1;
};

template <typename Key>
Kernel MakeMappingOf(const KernelRequest& request, const Table& table) {
  Kernel kernel;
  kernel.run = [places = std::make_shared<const Places<Key>>(table.keys), table,
                slot = OutputSlot(request, 0)](const KernelCall& call) -> absl::Status {
    const Tensor& x = *call.inputs[0];
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, x.shape()));
    const Key* keys = x.data<Key>();
    DispatchWidth(output->dtype(), [&]<typename T>() {
      T* y = output->data<T>();
      const T* values = table.values.data<T>();
      ParallelFor(x.elements(), MoveGrain<T>() / 8, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t place = places->Of(keys[i]);
          y[i] = place < 0 ? *table.otherwise.data<T>() : values[place];
        }
      });
    });
    return absl::OkStatus();
  };
  return kernel;
}

absl::StatusOr<Kernel> MakeMapping(const KernelRequest& request, const Table& table) {
  const Node& node = request.node;
  const DType from = request.inputs[0].dtype, to = request.outputs[0].dtype;
  if (table.keys.dtype() != from || table.values.dtype() != to) {
    return NodeError(node, absl::StrCat("maps ", DTypeName(table.keys.dtype()), " to ",
                                        DTypeName(table.values.dtype()), ", but takes ",
                                        DTypeName(from), " and gives ", DTypeName(to)));
  }
  if (table.keys.elements() != table.values.elements()) {
    return NodeError(node, absl::StrCat("has ", table.keys.elements(), " keys and ",
                                        table.values.elements(), " values"));
  }
  switch (from) {
    case DType::kString: return MakeMappingOf<std::string>(request, table);
    case DType::kInt64: return MakeMappingOf<int64_t>(request, table);
    case DType::kInt32: return MakeMappingOf<int32_t>(request, table);
    case DType::kInt16: return MakeMappingOf<int16_t>(request, table);
    case DType::kFloat: return MakeMappingOf<float>(request, table);
    case DType::kDouble: return MakeMappingOf<double>(request, table);
    default:
      return NodeUnimplemented(node, absl::StrCat("no kernel for keys of ", DTypeName(from)));
  }
}

// Version 1 knows one list, of strings; its places are the numbers.
Table NumberedStrings(const Node& node, const std::vector<std::string>& names,
                      const std::vector<int64_t>& numbers, bool from_strings) {
  const Shape shape{static_cast<int64_t>(names.size())};
  Tensor text = Tensor::FromValues<std::string>(shape, absl::MakeConstSpan(names));
  Tensor number = Tensor::FromValues<int64_t>(Shape{static_cast<int64_t>(numbers.size())},
                                              absl::MakeConstSpan(numbers));
  if (from_strings) return {text, number, DefaultOf(node, DType::kInt64)};
  return {number, text, DefaultOf(node, DType::kString)};
}

absl::StatusOr<Kernel> MakeLabelEncoder(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  const Node& node = request.node;
  if (node.Has("classes_strings")) {
    const std::vector<std::string> names = node.Strings("classes_strings");
    std::vector<int64_t> places(names.size());
    for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int64_t>(i);
    return MakeMapping(
        request, NumberedStrings(node, names, places, request.inputs[0].dtype == DType::kString));
  }
  std::optional<Tensor> keys = ListOf(node, "keys"), values = ListOf(node, "values");
  if (!keys.has_value() || !values.has_value()) {
    return NodeError(node, "needs keys_* and values_* of one kind each");
  }
  return MakeMapping(request, {*keys, *values, DefaultOf(node, values->dtype())});
}

absl::StatusOr<Kernel> MakeCategoryMapper(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  const Node& node = request.node;
  return MakeMapping(request,
                     NumberedStrings(node, node.Strings("cats_strings"), node.Ints("cats_int64s"),
                                     request.inputs[0].dtype == DType::kString));
}

template <typename Key, typename Input>
Kernel MakeOneHotOf(const KernelRequest& request, const Tensor& categories) {
  Kernel kernel;
  kernel.run = [places = std::make_shared<const Places<Key>>(categories),
                depth = categories.elements(), zeros = request.node.Int("zeros", 1) != 0,
                node = KeepNode(request.node),
                slot = OutputSlot(request, 0)](const KernelCall& call) -> absl::Status {
    const Tensor& x = *call.inputs[0];
    Shape shape = x.shape();
    shape.push_back(depth);
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, shape));
    float* y = output->data<float>();
    std::fill(y, y + output->elements(), 0.0f);
    for (int64_t i = 0; i < x.elements(); ++i) {
      int64_t place = -1;
      if constexpr (std::is_same_v<Key, std::string>) {
        place = places->Of(x.data<std::string>()[i]);
      } else {
        // As onnxruntime has it: a fraction counts as the number before it.
        const double number = static_cast<double>(x.data<Input>()[i]);
        if (std::abs(number) < 0x1p62) place = places->Of(static_cast<int64_t>(x.data<Input>()[i]));
      }
      if (place >= 0) {
        y[i * depth + place] = 1;
      } else if (!zeros) {
        return NodeError(*node, absl::StrCat("element ", i, " is no category, and zeros is 0"));
      }
    }
    return absl::OkStatus();
  };
  return kernel;
}

absl::StatusOr<Kernel> MakeOneHotEncoder(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  const Node& node = request.node;
  const bool text = request.inputs[0].dtype == DType::kString;
  const std::optional<Tensor> categories = ListOf(node, "cats");
  if (!categories.has_value() || (categories->dtype() == DType::kString) != text) {
    return NodeError(node, absl::StrCat("an input of ", DTypeName(request.inputs[0].dtype),
                                        " needs ", text ? "cats_strings" : "cats_int64s"));
  }
  switch (request.inputs[0].dtype) {
    case DType::kString: return MakeOneHotOf<std::string, std::string>(request, *categories);
    case DType::kInt64: return MakeOneHotOf<int64_t, int64_t>(request, *categories);
    case DType::kInt32: return MakeOneHotOf<int64_t, int32_t>(request, *categories);
    case DType::kFloat: return MakeOneHotOf<int64_t, float>(request, *categories);
    case DType::kDouble: return MakeOneHotOf<int64_t, double>(request, *categories);
    default: return NodeUnimplemented(node, "no kernel for this type");
  }
}

}  // namespace

void RegisterEncoderKernels(KernelTable& table) {
  table.Add("LabelEncoder",
            {"reference", 1, MakeLabelEncoder, "float, double, int16, int32, int64, string"},
            kMlDomain);
  table.Add("CategoryMapper", {"reference", 1, MakeCategoryMapper, "int64, string"}, kMlDomain);
  table.Add("OneHotEncoder",
            {"reference", 1, MakeOneHotEncoder, "float, double, int32, int64, string"}, kMlDomain);
}

}  // namespace onward
