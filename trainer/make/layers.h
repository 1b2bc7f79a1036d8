// SPDX-License-Identifier: Apache-2.0
// What new models are made of: layers with weights drawn from a seed.
#ifndef ONWARD_TRAINER_MAKE_LAYERS_H_
#define ONWARD_TRAINER_MAKE_LAYERS_H_

#include <cstdint>
#include <random>
#include <string>

#include "absl/status/statusor.h"
#include "core/graph/builder.h"
#include "core/graph/graph.h"
#include "core/onnx_io/model.h"
#include "environment/environment.h"

namespace onward {

class Layers {
 public:
  Layers(std::string name, uint64_t seed, const Environment& environment);

  GraphBuilder& b() { return b_; }
  // A weight drawn uniformly from +-bound.
  Expr Weight(const std::string& name, const Shape& shape, double bound);
  Expr Filled(const std::string& name, const Shape& shape, float value);
  // [N, in] to [N, out], drawn as He et al. have it.
  Expr Linear(const Expr& x, const std::string& name, int64_t in, int64_t out);
  Expr Relu(const Expr& x) { return b_.Op("Relu", {x}); }
  Expr Gelu(const Expr& x);
  Expr Dropout(const Expr& x, float ratio);

  absl::StatusOr<Model> Finish(const Expr& output);

 private:
  std::mt19937_64 random_;
  Graph graph_;
  GraphBuilder b_;
};

}  // namespace onward

#endif  // ONWARD_TRAINER_MAKE_LAYERS_H_
