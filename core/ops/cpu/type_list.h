// SPDX-License-Identifier: Apache-2.0
// Sets of element types, and the way from a DType to one of their members.
#ifndef ONWARD_CORE_OPS_CPU_TYPE_LIST_H_
#define ONWARD_CORE_OPS_CPU_TYPE_LIST_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/dtype.h"

namespace onward {

template <typename... T>
struct TypeList {
  template <typename... U>
  using With = TypeList<T..., U...>;

  // Calls f.template operator()<T>() for the member that `dtype` names; false
  // where none does.
  template <typename F>
  static bool Dispatch(DType dtype, F&& f) {
    return ((dtype == DTypeOf<T>::value && (f.template operator()<T>(), true)) || ...);
  }

  // "float, double".
  static std::string Names() {
    std::string names;
    (absl::StrAppend(&names, names.empty() ? "" : ", ", std::string(DTypeName(DTypeOf<T>::value))),
     ...);
    return names;
  }
};

using FloatingTypes = TypeList<float, double, Float16, BFloat16>;
using SignedTypes = FloatingTypes::With<int8_t, int16_t, int32_t, int64_t>;
using NumericTypes = SignedTypes::With<uint8_t, uint16_t, uint32_t, uint64_t>;
using WideNumericTypes = FloatingTypes::With<int32_t, int64_t, uint32_t, uint64_t>;
using IntegerTypes =
    TypeList<int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t>;
using BoolType = TypeList<bool>;

}  // namespace onward

#endif  // ONWARD_CORE_OPS_CPU_TYPE_LIST_H_
