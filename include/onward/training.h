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

  // Back to the values of `start`, the model this was opened with or a checkpoint of it.
  Status Reset(const Model& start);

  // How many training graphs (TrainingInfoProto) the model has; most have one.
  int entries() const;
  // What Step has to be fed: the model's inputs that training reads, and labels.
  const std::vector<ValueInfo>& inputs() const;
  // The name of the scalar loss among the outputs of Step, as MakeTrainable noted it in
  // the model; "" where it is not known.
  std::string loss() const;

  // One training step. `outputs` names what to return; none: all outputs of the training
  // graphs. A step that fails, or whose loss is not finite, changes nothing.
  Result<TensorMap> Step(const TensorMap& feeds, const std::vector<std::string>& outputs = {});
  // One entry alone, from 0, as a step of its own; the caller minds the order.
  Result<TensorMap> StepEntry(int entry, const TensorMap& feeds,
                              const std::vector<std::string>& outputs = {});
  // The outputs of the training graphs, the loss among them, without learning from it.
  Result<TensorMap> Evaluate(const TensorMap& feeds, const std::vector<std::string>& outputs = {});
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
  // The plain inference model with the present weights, or with their averages
  // (AuthorOptions::ema).
  Result<Model> Inference(bool averages = false) const;

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
