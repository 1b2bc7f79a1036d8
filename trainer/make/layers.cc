// SPDX-License-Identifier: Apache-2.0
#include "trainer/make/layers.h"

#include <algorithm>
#include <cmath>

#include "core/base/status.h"
#include "training_info/export.h"

namespace onward {

Layers::Layers(std::string name, uint64_t seed, const Environment& environment)
    : random_(seed), b_(&graph_, &environment.operators(), "h") {
  graph_.name = std::move(name);
  graph_.opsets[""] = kOldestWrittenOpset;
}

Expr Layers::Weight(const std::string& name, const Shape& shape, double bound) {
  Tensor w(DType::kFloat, shape);
  for (int64_t i = 0; i < w.elements(); ++i) {
    const double unit = static_cast<double>(random_() >> 11) * 0x1p-53;  // [0, 1)
    w.data<float>()[i] = static_cast<float>(bound * (2 * unit - 1));
  }
  graph_.types[name] = ValueType::Of(w.dtype(), w.shape());
  graph_.initializers[name] = std::move(w);
  return b_.Value(name);
}

Expr Layers::Filled(const std::string& name, const Shape& shape, float value) {
  const Expr weight = Weight(name, shape, 0);
  Tensor& w = graph_.initializers[name];
  std::fill(w.data<float>(), w.data<float>() + w.elements(), value);
  return weight;
}

Expr Layers::Linear(const Expr& x, const std::string& name, int64_t in, int64_t out) {
  const double bound = std::sqrt(6.0 / static_cast<double>(std::max<int64_t>(in, 1)));
  return b_.Op("Gemm",
               {x, Weight(name + ".weight", {out, in}, bound), Filled(name + ".bias", {out}, 0)},
               {{"transB", 1}});
}

Expr Layers::Gelu(const Expr& x) { return x * 0.5 * (Erf(x / std::sqrt(2.0)) + 1); }

Expr Layers::Dropout(const Expr& x, float ratio) {
  return b_.Op("Dropout", {x, b_.Constant(Tensor::Scalar<float>(ratio))});
}

absl::StatusOr<Model> Layers::Finish(const Expr& output) {
  b_.Output(b_.Named(output, "output"));
  ONWARD_RETURN_IF_ERROR(b_.status());
  return ModelFromGraph(graph_, kWrittenIr, "onward");
}

}  // namespace onward
