// SPDX-License-Identifier: Apache-2.0
// Running a model as it is.
//
// Threads: one thread at a time may use a session; different sessions, also of one
// model, are independent. A run uses all cores (OMP_NUM_THREADS sets another number).
#ifndef ONWARD_INFERENCE_H_
#define ONWARD_INFERENCE_H_

#include <memory>
#include <vector>

#include "onward/environment.h"
#include "onward/model.h"
#include "onward/status.h"
#include "onward/tensor.h"
#include "onward/value.h"

namespace onward::api {

class InferenceSession {
 public:
  // Prepares the inference graph. An error where the model is broken, an operator has no
  // kernel, or this CPU cannot run kernels.
  static Result<InferenceSession> Create(const Model& model, const Environment& environment = {});

  // What Run has to be fed.
  const std::vector<ValueInfo>& inputs() const;
  const std::vector<ValueInfo>& outputs() const;

  // Computes all outputs; the caller owns them. The first run with feeds of certain shapes
  // compiles the graph for them; later ones reuse that.
  Result<TensorMap> Run(const TensorMap& feeds);
  // The same for models whose inputs or outputs are not all tensors. An optional input that
  // is not fed is empty.
  Result<ValueMap> RunValues(const ValueMap& feeds);

  InferenceSession(InferenceSession&& other) noexcept;
  InferenceSession& operator=(InferenceSession&& other) noexcept;
  ~InferenceSession();

 private:
  struct Impl;
  explicit InferenceSession(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace onward::api

#endif  // ONWARD_INFERENCE_H_
