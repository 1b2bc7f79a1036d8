// SPDX-License-Identifier: Apache-2.0
// Running the training that a model carries.
//
// Threads: one thread at a time may use a session; different sessions are independent. A
// step uses all cores (OMP_NUM_THREADS sets another number).
#ifndef ONWARD_TRAINING_H_
#define ONWARD_TRAINING_H_

#include <memory>
#include <string>
#include <vector>

#include "onward/environment.h"
#include "onward/model.h"
#include "onward/status.h"
#include "onward/tensor.h"
#include "onward/value.h"

namespace onward::api {

class TrainingSession {
 public:
  // Opens a model that has training: one that MakeTrainable made, or any other with
  // TrainingInfoProto. Training goes on where the file stands. An error lists everything
  // that is wrong with the training, or says why this CPU cannot run it.
  static Result<TrainingSession> Create(const Model& model, const Environment& environment = {});

  // Starts anew: variables as in the model, then its initialization (fresh weights).
  Status Initialize();

  // What Step has to be fed: the model's inputs that training reads, and labels.
  const std::vector<ValueInfo>& inputs() const;
  // The name of the scalar loss among the outputs of Step, as MakeTrainable noted it in
  // the model; "" where it is not known.
  std::string loss() const;

  // One training step. `outputs` names what to return; none: all outputs of the training
  // graphs. A step that fails, or whose loss is not finite, changes nothing.
  Result<TensorMap> Step(const TensorMap& feeds, const std::vector<std::string>& outputs = {});
  // The same where not all inputs or outputs are tensors.
  Result<ValueMap> StepValues(const ValueMap& feeds, const std::vector<std::string>& outputs = {});
  // The inference graph with the present weights.
  Result<TensorMap> Infer(const TensorMap& feeds);

  // Names of all that steps change, sorted: weights, running statistics, optimizer state.
  std::vector<std::string> Variables() const;
  // A copy of the present value of one.
  Result<Tensor> Variable(const std::string& name) const;
  // Gives it another, of the same type and shape.
  Status SetVariable(const std::string& name, const Tensor& value);

  // The model with its present values: a checkpoint, to be written and opened again.
  Result<Model> Checkpoint() const;
  // The plain inference model with the present weights.
  Result<Model> Inference() const;

  TrainingSession(TrainingSession&& other) noexcept;
  TrainingSession& operator=(TrainingSession&& other) noexcept;
  ~TrainingSession();

 private:
  struct Impl;
  explicit TrainingSession(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace onward::api

#endif  // ONWARD_TRAINING_H_
