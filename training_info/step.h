// SPDX-License-Identifier: Apache-2.0
// The interpreter of TrainingInfoProto: a model as a stateful object with
// initialize, step and infer.
#ifndef ONWARD_TRAINING_INFO_STEP_H_
#define ONWARD_TRAINING_INFO_STEP_H_

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/onnx_io/model.h"
#include "core/runtime/devices/residents.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "training_info/spec.h"

namespace onward {

// Keys of ModelProto.metadata_props that carry what the standard has no field
// for.
inline constexpr char kMetaLoss[] = "onward.loss_value";      // name of the scalar loss
inline constexpr char kMetaLossSpec[] = "onward.loss";        // what --loss takes
inline constexpr char kMetaOutput[] = "onward.output_value";  // what the loss compares with labels
inline constexpr char kMetaTrainOutput[] =
    "onward.training_output_value";  // the same in training mode
inline constexpr char kMetaLabel[] = "onward.label_input";
inline constexpr char kMetaAccumulate[] = "onward.accumulate";  // steps of an update, if several
inline constexpr char kMetaRandomSeed[] = "onward.random_seed";
inline constexpr char kMetaRandomStep[] = "onward.random_step";
// The variable that the loss is multiplied by before it is differentiated. Such an algorithm leaves
// steps out whose numbers overflow, so that the loss may be anything.
inline constexpr char kMetaLossScale[] = "onward.loss_scale";
// Iterations done, where entries have rates (spec.h) that depend on it.
inline constexpr char kMetaIteration[] = "onward.iteration";

class TrainingModel {
 public:
  // Imports, validates (all findings at once), combines and lowers every entry. The
  // environment has to outlive the result.
  static absl::StatusOr<std::unique_ptr<TrainingModel>> Create(Model model,
                                                               const Environment& environment);

  // Sets every variable to the file's value, then runs every entry's
  // initialization, in order, and assigns the results.
  absl::Status Initialize();
  // Back to the values of `start`, the model this was opened with or a checkpoint of it: every
  // variable, the generator's state and the number of iterations.
  absl::Status Reset(const Model& start);
  // One iteration: every entry whose rate includes it, in order, each followed by its
  // assignments.
  // `outputs` names what to return; empty: all outputs of the training graphs.
  // If an entry fails, the state is as before the iteration.
  absl::StatusOr<TensorMap> Step(const TensorMap& feeds,
                                 const std::vector<std::string>& outputs = {},
                                 const std::atomic<bool>* cancel = nullptr);
  // The same where not all is tensors.
  absl::StatusOr<ValueMap> StepValues(const ValueMap& feeds,
                                      const std::vector<std::string>& outputs = {},
                                      const std::atomic<bool>* cancel = nullptr);
  // One entry alone, as a step of its own; the caller minds the order.
  absl::StatusOr<ValueMap> StepEntryValues(int entry, const ValueMap& feeds,
                                           const std::vector<std::string>& outputs = {},
                                           const std::atomic<bool>* cancel = nullptr);
  absl::StatusOr<TensorMap> StepEntry(int entry, const TensorMap& feeds,
                                      const std::vector<std::string>& outputs = {},
                                      const std::atomic<bool>* cancel = nullptr);
  // Begins to copy what the next step (during a step: the one after it) is fed to the accelerators,
  // while they compute. It finds it there if it is fed the same tensors, which do not change until
  // then.
  absl::Status Stage(const TensorMap& feeds, const std::vector<std::string>& outputs = {});
  // What to do while accelerators work on the next step: called once, before the host waits for
  // them; not at all where there are none.
  void set_meanwhile(std::function<void()> meanwhile) { meanwhile_ = std::move(meanwhile); }
  // What the training graphs of all entries give for the present values (the loss of a batch that
  // is not learned from, say), in the mode that they train in. Nothing changes.
  absl::StatusOr<ValueMap> EvaluateValues(const ValueMap& feeds,
                                          const std::vector<std::string>& outputs = {},
                                          const std::atomic<bool>* cancel = nullptr);
  absl::StatusOr<TensorMap> Evaluate(const TensorMap& feeds,
                                     const std::vector<std::string>& outputs = {},
                                     const std::atomic<bool>* cancel = nullptr);
  // The inference graph with the present values.
  absl::StatusOr<TensorMap> Infer(const TensorMap& feeds);

  int entries() const { return static_cast<int>(spec_.entries.size()); }
  // What a step has to be fed (entry -1: all entries), pruned to what is read.
  std::vector<NamedType> StepInputs(int entry = -1,
                                    const std::vector<std::string>& outputs = {}) const;
  // An error that lists the outputs of the entries, where the name is none of them.
  absl::Status CheckOutput(const std::string& name) const;
  const Graph& lowered(int entry) const { return lowered_[entry]; }
  const TrainingSpec& spec() const { return spec_; }
  // The file's, but for the values of variables.
  const Model& model() const { return model_; }
  const Environment& environment() const { return environment_; }
  // Those that devices hold are copied to the host first.
  const Variables& variables() const {
    BringHome();
    return variables_;
  }
  // To change them, or to run something on them; what the steps noted of them is void
  // then, so the reference is good until the next step.
  Variables& variables() {
    // What could not be fetched stays the device's.
    if (BringHome()) residents_.Forget();
    OwnVariables();
    writer_ = nullptr;
    return variables_;
  }

  // The variables with averages in the place of weights, where the file keeps them (averages.h).
  bool has_averages() const { return !averages_.empty(); }
  Variables AveragedVariables() const;

  // Draws depend on (seed, node, step): both travel in the file.
  RandomState random() const { return random_; }
  void set_random(RandomState random) { random_ = random; }

  // Called after each kernel of a step with its node and nanoseconds; null: nobody is.
  void set_on_kernel(std::function<void(const PlanStep&, int64_t)> on_kernel) {
    on_kernel_ = std::move(on_kernel);
  }

  // The model with the present values and the generator's state. It shares the values until
  // the next step, which copies them where the model is still there by then.
  absl::StatusOr<Model> Export() const;

  // For `bench` and `inspect`: the plan of an entry for feeds like these, or of these types.
  absl::StatusOr<Executor*> PrepareStep(int entry, const TensorMap& feeds,
                                        const std::vector<std::string>& outputs);
  absl::StatusOr<Executor*> PrepareStep(int entry, const std::map<std::string, FeedType>& feeds,
                                        const std::vector<std::string>& outputs);

 private:
  TrainingModel(Model model, const Environment& environment)
      : model_(std::move(model)), environment_(environment) {}
  // One entry compiled for one choice of outputs, and what it has to be fed.
  struct Program {
    Session session;
    std::vector<NamedType> inputs;
  };
  enum class Effect { kAssigns, kChangesNothing };
  absl::Status OpenVariables();
  void ReadCounters(const Model& model);
  Variables CopyOfVariables() const;
  void RestoreVariables(const Variables& saved);
  // What devices hold newer goes to the host. False: it did not, and the error stays in fetched_,
  // for the next call that can return it; what is fetched is tried again.
  bool BringHome() const;
  absl::Status TakeFetched() const { return std::exchange(fetched_, absl::OkStatus()); }
  // All variables, wherever they are.
  void Overwrite(const Variables& all);
  // Before variables are written to: what Export has lent stays as it is.
  void OwnVariables();
  // Whether a step of this number runs an entry.
  bool TakesPart(int entry, uint64_t iteration) const {
    return spec_.entries[entry].rate.Includes(static_cast<int64_t>(iteration));
  }
  CompileOptions StepOptions(int entry, const std::vector<std::string>& outputs,
                             Effect effect) const;
  Program& StepProgram(int entry, const std::vector<std::string>& outputs, Effect effect);
  std::vector<NamedType> InputsOf(int entry, const std::vector<std::string>& outputs,
                                  Effect effect) const;
  absl::StatusOr<ValueMap> RunEntry(int entry, const ValueMap& feeds,
                                    const std::vector<std::string>& outputs,
                                    const std::atomic<bool>* cancel,
                                    Effect effect = Effect::kAssigns);

  Model model_;
  const Environment& environment_;
  TrainingSpec spec_;
  std::vector<Graph> lowered_;
  mutable Variables variables_;
  mutable Residents residents_;
  mutable absl::Status fetched_;
  std::map<std::string, std::string> averages_;  // AveragesOf(spec_)
  Variables originals_;  // the file's values of variables that no initialization computes
  mutable std::weak_ptr<Variables> lent_;
  const Executor* writer_ = nullptr;  // RunOptions::writer
  std::function<void()> meanwhile_;
  RandomState random_;
  std::function<void(const PlanStep&, int64_t)> on_kernel_;
  uint64_t iteration_ = 0;  // of Step; entries run alone do not count
  std::map<std::tuple<int, Effect, std::vector<std::string>>, std::unique_ptr<Program>> programs_;
  std::unique_ptr<Session> inference_;
};

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_STEP_H_
