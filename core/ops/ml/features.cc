// SPDX-License-Identifier: Apache-2.0
// Scaler, Normalizer, Imputer, Binarizer, FeatureVectorizer and ArrayFeatureExtractor.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/graph/attribute_lists.h"
#include "core/ops/index/index.h"
#include "core/ops/ml/ml.h"
#include "core/ops/movement/movement.h"

namespace onward {
namespace {

constexpr int64_t kGrain = 16384;  // elements worth a thread

// The numbers along the last axis: one for each place there, or one for all.
struct Along {
  std::vector<double> values;
  double At(int64_t i) const { return values.size() == 1 ? values[0] : values[i]; }
};

absl::Status CheckAlong(const Node& node, const char* what, const Along& along,
                        const Shape& shape) {
  const int64_t given = static_cast<int64_t>(along.values.size());
  const int64_t width = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
  if (given == 1 || given == width) return absl::OkStatus();
  return NodeError(node, absl::StrCat(what, " has ", given, " values for ", width, " features"));
}

// Calls f(row, column) for the elements of a range.
template <typename F>
void ForElements(const Tensor& x, int64_t grain, const F& f) {
  const int rank = x.shape().rank();
  const int64_t width = rank == 0 ? 1 : x.shape()[rank - 1];
  if (width == 0) return;
  ParallelFor(x.elements(), grain, [&](int64_t begin, int64_t end) {
    int64_t column = begin % width;
    for (int64_t i = begin; i < end; ++i) {
      f(i, column);
      if (++column == width) column = 0;
    }
  });
}

// y = (x - offset) * scale
absl::StatusOr<Kernel> MakeScaler(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  ONWARD_RETURN_IF_ERROR(CheckNumbers(request));
  Along offset{NumbersOf(request.node, "offset")}, scale{NumbersOf(request.node, "scale")};
  if (offset.values.empty()) offset.values = {0};
  if (scale.values.empty()) scale.values = {1};
  Kernel kernel;
  kernel.run = [offset = std::move(offset), scale = std::move(scale), node = KeepNode(request.node),
                slot = OutputSlot(request, 0)](const KernelCall& call) -> absl::Status {
    const Tensor& x = *call.inputs[0];
    ONWARD_RETURN_IF_ERROR(CheckAlong(*node, "offset", offset, x.shape()));
    ONWARD_RETURN_IF_ERROR(CheckAlong(*node, "scale", scale, x.shape()));
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, x.shape()));
    float* y = output->data<float>();
    const size_t columns = std::max(offset.values.size(), scale.values.size());
    DispatchNumeric(x.dtype(), [&]<typename T>() {
      // In float what is fed in float, else in double.
      using C = std::conditional_t<std::is_same_v<T, float>, float, double>;
      std::vector<C> offsets(columns), scales(columns);
      for (size_t i = 0; i < columns; ++i) {
        offsets[i] = static_cast<C>(offset.At(static_cast<int64_t>(i)));
        scales[i] = static_cast<C>(scale.At(static_cast<int64_t>(i)));
      }
      const T* from = x.data<T>();
      const int64_t step = columns == 1 ? 0 : 1;
      ForElements(x, kGrain, [&](int64_t i, int64_t column) {
        y[i] = static_cast<float>((static_cast<C>(from[i]) - offsets[column * step]) *
                                  scales[column * step]);
      });
    });
    return absl::OkStatus();
  };
  return kernel;
}

enum class Norm { kMax, kL1, kL2 };

// What a row is divided by. MAX is the largest number, not the largest size, as the standard has
// it.
template <typename C, typename T>
C NormOf(Norm norm, const T* row, int64_t n) {
  C value = norm == Norm::kMax ? static_cast<C>(row[0]) : C(0);
  for (int64_t i = 0; i < n; ++i) {
    const C x = static_cast<C>(row[i]);
    switch (norm) {
      case Norm::kMax: value = x > value || std::isnan(x) ? x : value; break;
      case Norm::kL1: value += std::abs(x); break;
      case Norm::kL2: value += x * x; break;
    }
  }
  if (norm == Norm::kL2) value = std::sqrt(value);
  return value == C(0) ? C(1) : value;
}

absl::StatusOr<Kernel> MakeNormalizer(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  ONWARD_RETURN_IF_ERROR(CheckNumbers(request));
  const std::string name = request.node.String("norm", "MAX");
  const Norm norm = name == "L1" ? Norm::kL1 : name == "L2" ? Norm::kL2 : Norm::kMax;
  Kernel kernel;
  kernel.run = [norm, node = KeepNode(request.node),
                slot = OutputSlot(request, 0)](const KernelCall& call) -> absl::Status {
    const Tensor& x = *call.inputs[0];
    ONWARD_ASSIGN_OR_RETURN(const Rows rows, RowsOf(*node, x.shape()));
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, x.shape()));
    float* y = output->data<float>();
    const int64_t n = rows.width;
    if (n == 0) return absl::OkStatus();
    DispatchNumeric(x.dtype(), [&]<typename T>() {
      using C = std::conditional_t<std::is_same_v<T, float>, float, double>;
      const T* from = x.data<T>();
      ParallelFor(rows.count, std::max<int64_t>(1, kGrain / n), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const C divisor = NormOf<C>(norm, from + r * n, n);
          for (int64_t i = r * n; i < (r + 1) * n; ++i) {
            y[i] = static_cast<float>(static_cast<C>(from[i]) / divisor);
          }
        }
      });
    });
    return absl::OkStatus();
  };
  return kernel;
}

template <typename T>
Kernel MakeImputerOf(const KernelRequest& request, Along values, T replaced) {
  Kernel kernel;
  kernel.in_place = {{0, 0}};
  kernel.run = [values = std::move(values), replaced, node = KeepNode(request.node),
                slot = OutputSlot(request, 0)](const KernelCall& call) -> absl::Status {
    const Tensor& x = *call.inputs[0];
    ONWARD_RETURN_IF_ERROR(CheckAlong(*node, "the imputed values", values, x.shape()));
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, x.shape()));
    const T* from = x.data<T>();
    T* y = output->data<T>();
    std::vector<T> imputed(values.values.begin(), values.values.end());
    const int64_t step = imputed.size() == 1 ? 0 : 1;
    const bool nan = replaced != replaced;
    ForElements(x, kGrain, [&](int64_t i, int64_t column) {
      const bool missing = nan ? from[i] != from[i] : from[i] == replaced;
      y[i] = missing ? imputed[column * step] : from[i];
    });
    return absl::OkStatus();
  };
  return kernel;
}

absl::StatusOr<Kernel> MakeImputer(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  ONWARD_RETURN_IF_ERROR(CheckNumbers(request));
  const Node& node = request.node;
  const bool floating = IsFloating(request.inputs[0].dtype);
  Along values;
  if (floating) {
    values.values = NumbersOf(node, "imputed_value_floats");
  } else {
    const std::vector<int64_t> given = node.Ints("imputed_value_int64s");
    values.values.assign(given.begin(), given.end());
  }
  if (values.values.empty()) {
    return NodeError(node,
                     absl::StrCat("an input of ", DTypeName(request.inputs[0].dtype), " needs ",
                                  floating ? "imputed_value_floats" : "imputed_value_int64s"));
  }
  const float replaced = node.Float("replaced_value_float", 0);
  const int64_t number = node.Int("replaced_value_int64", 0);
  switch (request.inputs[0].dtype) {
    case DType::kFloat: return MakeImputerOf<float>(request, std::move(values), replaced);
    case DType::kDouble: return MakeImputerOf<double>(request, std::move(values), replaced);
    case DType::kInt32:
      if (number != static_cast<int32_t>(number)) {
        return NodeError(node, absl::StrCat("replaces ", number, ", which is no int32"));
      }
      return MakeImputerOf<int32_t>(request, std::move(values), static_cast<int32_t>(number));
    default: return MakeImputerOf<int64_t>(request, std::move(values), number);
  }
}

// y = x > threshold
absl::StatusOr<Kernel> MakeBinarizer(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  ONWARD_RETURN_IF_ERROR(CheckNumbers(request));
  Kernel kernel;
  kernel.in_place = {{0, 0}};
  kernel.run = [threshold = request.node.Float("threshold", 0),
                slot = OutputSlot(request, 0)](const KernelCall& call) -> absl::Status {
    const Tensor& x = *call.inputs[0];
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, x.shape()));
    DispatchNumeric(x.dtype(), [&]<typename T>() {
      const T* from = x.data<T>();
      T* y = output->data<T>();
      ParallelFor(x.elements(), kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          y[i] = T(static_cast<double>(from[i]) > static_cast<double>(threshold) ? 1 : 0);
        }
      });
    });
    return absl::OkStatus();
  };
  return kernel;
}

// Joins rows; each input is cut or filled with zeros to the width it is declared with.
absl::StatusOr<Kernel> MakeFeatureVectorizer(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  ONWARD_RETURN_IF_ERROR(CheckNumbers(request));
  std::vector<int64_t> widths = request.node.Ints("inputdimensions");
  if (!widths.empty() && widths.size() != request.inputs.size()) {
    return NodeError(request.node, absl::StrCat("inputdimensions has ", widths.size(),
                                                " values for ", request.inputs.size(), " inputs"));
  }
  Kernel kernel;
  kernel.run = [widths = std::move(widths), node = KeepNode(request.node),
                slot = OutputSlot(request, 0)](const KernelCall& call) -> absl::Status {
    std::vector<int64_t> wide = widths;
    int64_t count = 0, total = 0;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      if (call.inputs[i] == nullptr)
        return NodeError(*node, absl::StrCat("input ", i, " is missing"));
      ONWARD_ASSIGN_OR_RETURN(const Rows rows, RowsOf(*node, call.inputs[i]->shape()));
      if (widths.empty()) wide.push_back(rows.width);
      if (i > 0 && rows.count != count) {
        return NodeError(*node,
                         absl::StrCat("input ", i, " has ", rows.count, " rows, input 0 ", count));
      }
      count = rows.count;
      total += wide[i];
    }
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, Shape{count, total}));
    float* y = output->data<float>();
    int64_t at = 0;
    for (size_t i = 0; i < call.inputs.size(); at += wide[i++]) {
      const Tensor& x = *call.inputs[i];
      const int64_t own = x.shape()[x.shape().rank() - 1], taken = std::min(own, wide[i]);
      DispatchNumeric(x.dtype(), [&]<typename T>() {
        const T* from = x.data<T>();
        for (int64_t r = 0; r < count; ++r) {
          float* to = y + r * total + at;
          for (int64_t c = 0; c < taken; ++c) to[c] = static_cast<float>(from[r * own + c]);
          std::fill(to + taken, to + wide[i], 0.0f);
        }
      });
    }
    return absl::OkStatus();
  };
  return kernel;
}

// Columns of the last axis; of a vector, [1, n].
absl::StatusOr<Kernel> MakeArrayFeatureExtractor(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 2));
  ONWARD_RETURN_IF_ERROR(CheckMovable(request.node, request.inputs[0].dtype));
  Kernel kernel;
  kernel.run = [node = KeepNode(request.node),
                slot = OutputSlot(request, 0)](const KernelCall& call) -> absl::Status {
    const Tensor &x = *call.inputs[0], &columns = *call.inputs[1];
    const int rank = x.shape().rank();
    if (rank == 0) return NodeError(*node, "takes no features from a scalar");
    const int64_t width = x.shape()[rank - 1], n = columns.elements();
    if (n == 0) return NodeError(*node, "is asked for no features at all");
    for (const int64_t c : columns.values<int64_t>()) {
      if (c < 0 || c >= width) {
        return NodeError(*node, absl::StrCat("asks for feature ", c, " of ", width));
      }
    }
    Shape shape = x.shape();
    if (rank == 1) {
      shape = Shape{1, n};
    } else {
      shape[rank - 1] = n;
    }
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, shape));
    DispatchWidth(x.dtype(), [&]<typename T>() {
      TakeRows(output->data<T>(), x.data<T>(), columns.data<int64_t>(), output->elements() / n, n,
               int64_t{1}, width);
    });
    return absl::OkStatus();
  };
  return kernel;
}

}  // namespace

void RegisterFeatureKernels(KernelTable& table) {
  const std::string types = "float, double, int32, int64";
  table.Add("Scaler", {"reference", 1, MakeScaler, types}, kMlDomain);
  table.Add("Normalizer", {"reference", 1, MakeNormalizer, types}, kMlDomain);
  table.Add("Imputer", {"reference", 1, MakeImputer, types}, kMlDomain);
  table.Add("Binarizer", {"reference", 1, MakeBinarizer, types}, kMlDomain);
  table.Add("FeatureVectorizer", {"reference", 1, MakeFeatureVectorizer, types}, kMlDomain);
  table.Add("ArrayFeatureExtractor",
            {"reference", 1, MakeArrayFeatureExtractor, types + ", string"}, kMlDomain);
}

}  // namespace onward
