// SPDX-License-Identifier: Apache-2.0
#include "training_info/author_forward.h"

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/infer.h"
#include "training_info/averages.h"
#include "training_info/surgery/precision.h"
#include "training_info/surgery/surgery.h"

namespace onward {
namespace {

class ForwardWriter {
 public:
  ForwardWriter(const ForwardRequest& request, AlgorithmState* state, Graph* work)
      : options_(request.options),
        graph_(request.graph),
        outputs_(request.outputs),
        trained_(request.trained),
        operators_(request.environment.operators()),
        state_(*state),
        work_(*work) {}

  absl::StatusOr<TrainedForward> Write() {
    ChooseVariables();
    ONWARD_RETURN_IF_ERROR(CopyInTrainingMode());
    if (options_.precision != DType::kUndefined) ONWARD_RETURN_IF_ERROR(CopyInPrecision());
    return std::move(result_);
  }

 private:
  // The optimizer works on the weights, or on master copies of them.
  void ChooseVariables() {
    GraphBuilder b(&work_, &operators_, "train");
    std::string coarse;  // the type of weights that small updates are lost in
    for (const std::string& name : trained_) {
      const Tensor& weight = graph_.initializers.at(name);
      const bool narrow = IsHalf(weight.dtype());
      TrainedWeight trained{name, name, weight.dtype()};
      if (narrow && options_.precision != DType::kUndefined) {
        const Expr master = state_.AddLike(b, absl::StrCat(name, "__master"), name,
                                           RoundedTo(DType::kFloat, weight), kMasterOfKey);
        masters_[name] = master.name();
        trained = {name, master.name(), DType::kFloat};
      }
      if (IsHalf(trained.dtype)) coarse = DTypeName(trained.dtype);
      result_.weights.push_back(std::move(trained));
    }
    if (coarse.empty()) return;
    result_.notes.push_back(absl::StrCat("the weights are ", coarse,
                                         ", in which small updates are "
                                         "lost: --precision ",
                                         coarse, " trains float copies of them"));
  }

  // The shape is that of the original, also where only its declaration tells.
  void DeclareLike(const std::string& output, const std::string& value, DType dtype) {
    if (const ValueType* type = work_.TypeOf(output)) {
      ValueType declared = *type;
      if (dtype != DType::kUndefined) declared.dtype = dtype;
      work_.types[value] = std::move(declared);
    }
  }

  absl::Status CopyInTrainingMode() {
    const TrainingModes modes = {.freeze_statistics =
                                     options_.freeze_statistics || !options_.lora.empty()};
    if (!NeedsTrainingForward(graph_, outputs_, modes)) return absl::OkStatus();
    TrainingForward forward = CopyForward(graph_, outputs_, modes);
    for (Node& node : forward.nodes) work_.nodes.push_back(std::move(node));
    for (const Binding& b : forward.statistics) state_.Bind(b.variable, b.value);
    result_.notes.push_back(
        "the algorithm holds a training-mode copy of the forward pass (BatchNormalization, "
        "Dropout)");
    ONWARD_RETURN_IF_ERROR(InferTypes(&work_, operators_));
    for (size_t i = 0; i < outputs_.size(); ++i) {
      result_.outputs[outputs_[i]] = forward.outputs[i];
      DeclareLike(outputs_[i], forward.outputs[i], DType::kUndefined);
    }
    return absl::OkStatus();
  }

  absl::Status CopyInPrecision() {
    std::vector<WantedValue> wanted;
    for (const std::string& output : outputs_) {
      wanted.push_back({Renamed(result_.outputs, output), DType::kFloat});
    }
    for (const Binding& b : state_.bindings()) {
      wanted.push_back({b.value, graph_.initializers.at(b.variable).dtype()});
    }
    LoweredForward forward =
        LowerPrecision(work_, wanted, options_.precision, masters_, operators_);
    if (forward.products == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("no product or convolution of the model can be computed in ",
                       DTypeName(options_.precision), "; leave --precision out"));
    }
    for (Node& node : forward.nodes) work_.nodes.push_back(std::move(node));
    ONWARD_RETURN_IF_ERROR(InferTypes(&work_, operators_));
    for (size_t i = 0; i < outputs_.size(); ++i) {
      DeclareLike(outputs_[i], forward.values[i], DType::kFloat);
      result_.outputs[outputs_[i]] = forward.values[i];
    }
    for (size_t i = 0; i < state_.bindings().size(); ++i) {
      state_.bindings()[i].value = forward.values[outputs_.size() + i];
    }
    result_.notes.push_back(absl::StrCat(
        forward.products, " products and convolutions compute in ", DTypeName(options_.precision),
        ", the optimizer in float", masters_.empty() ? "" : " (master copies of the weights)"));
    return absl::OkStatus();
  }

  const AuthorOptions& options_;
  const Graph& graph_;
  const std::vector<std::string>& outputs_;
  const std::vector<std::string>& trained_;
  const OperatorSet& operators_;
  AlgorithmState& state_;
  Graph& work_;
  Renaming masters_;  // weight -> its master copy
  TrainedForward result_;
};

}  // namespace

absl::StatusOr<TrainedForward> WriteForward(const ForwardRequest& request, AlgorithmState* state,
                                            Graph* work) {
  return ForwardWriter(request, state, work).Write();
}

}  // namespace onward
