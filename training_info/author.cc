// SPDX-License-Identifier: Apache-2.0
#include "training_info/author.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/differentiate.h"
#include "core/base/status.h"
#include "core/graph/infer.h"
#include "core/graph/inline.h"
#include "core/graph/rename.h"
#include "core/graph/verify.h"
#include "training_info/author_loss.h"
#include "training_info/author_state.h"
#include "training_info/author_update.h"
#include "training_info/averages.h"
#include "training_info/export.h"
#include "training_info/library.h"
#include "training_info/lower.h"
#include "training_info/step.h"
#include "training_info/surgery/precision.h"
#include "training_info/surgery/surgery.h"
#include "training_info/weights/choice.h"

namespace onward {
namespace {

class Author {
 public:
  Author(const Model& model, const AuthorOptions& options, const Environment& environment)
      : source_(model),
        options_(options),
        environment_(environment),
        weights_(options.train, options.freeze) {}

  absl::StatusOr<AuthorResult> Run() {
    ONWARD_RETURN_IF_ERROR(CheckNumbers());
    ONWARD_RETURN_IF_ERROR(PrepareInference());
    ONWARD_ASSIGN_OR_RETURN(trained_, weights_.Choose(outputs_, graph_));
    ONWARD_RETURN_IF_ERROR(BuildAlgorithm());
    return Assemble();
  }

  absl::StatusOr<GradientReport> Report() {
    ONWARD_RETURN_IF_ERROR(PrepareInference());
    ONWARD_ASSIGN_OR_RETURN(trained_, weights_.Choose(outputs_, graph_));
    Graph work = graph_;
    ONWARD_RETURN_IF_ERROR(AddLoss(&work));
    return ReportGradients(work, loss_, variables_, Differentiating());
  }

 private:
  absl::Status CheckNumbers() const {
    if (options_.accumulate < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("accumulate is ", options_.accumulate, "; it takes a number from 1"));
    }
    if (!(options_.ema >= 0 && options_.ema < 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("ema is ", options_.ema, "; it takes a decay from 0 to below 1"));
    }
    const DType p = options_.precision;
    if (p != DType::kUndefined && p != DType::kFloat16 && p != DType::kBFloat16) {
      return absl::InvalidArgumentError(
          absl::StrCat("precision is ", DTypeName(p), "; it takes bfloat16 or float16"));
    }
    return absl::OkStatus();
  }

  // The inference graph of the result, and whether the file's own has to be
  // rewritten for it.
  absl::Status PrepareInference() {
    if (source_.has_training()) {
      return absl::FailedPreconditionError(
          absl::StrCat("'", source_.path(),
                       "' already carries training_info; train it as it is, or start from "
                       "`onward export` of it"));
    }
    ONWARD_ASSIGN_OR_RETURN(Graph raw, InferenceGraph(source_));
    ONWARD_ASSIGN_OR_RETURN(graph_, InlineFunctions(raw));
    ONWARD_RETURN_IF_ERROR(FindingsToStatus(CheckGraph(graph_)));
    // A file of ai.onnx.ml alone need not import ai.onnx.
    if (graph_.opset() == 0) graph_.opsets[""] = kOldestWrittenOpset;
    const int oldest = std::max(kOldestWrittenOpset, OpsetForPrecision(graph_, options_.precision));
    if (graph_.opset() < oldest) {
      Note(absl::StrCat("raised the model from opset ", graph_.opset(), " to ", oldest));
      ONWARD_ASSIGN_OR_RETURN(graph_, RaiseOpset(graph_, oldest));
      rewritten_ = true;
    }
    ONWARD_RETURN_IF_ERROR(OpenLearnedModels());
    if (const ModeChange change = SetInferenceMode(&graph_); change.any()) {
      Note(absl::StrCat("the file is in training mode (", change.ToString(),
                        "): the inference graph is written in inference mode, the algorithm "
                        "trains in training mode"));
      rewritten_ = true;
    }
    if (options_.free_batch && FixedBatch(graph_) > 0) {
      Note(absl::StrCat("made the fixed batch size of ", FixedBatch(graph_), " variable"));
      ONWARD_RETURN_IF_ERROR(FreeBatch(environment_.operators(), &graph_));
      rewritten_ = true;
    }
    ONWARD_RETURN_IF_ERROR(ResolveOutputs());
    rewritten_ |= weights_.Prepare(outputs_, &graph_);
    if (options_.head_classes > 0) {
      ONWARD_ASSIGN_OR_RETURN(std::vector<std::string> replaced,
                              ReplaceHead(&graph_, output_, options_.head_classes, options_.seed));
      Note(absl::StrCat("replaced the classifier (", absl::StrJoin(replaced, ", "),
                        ") by one with ", options_.head_classes, " classes"));
      rewritten_ = true;
    }
    if (rewritten_) DropInitializersFromInputs();
    return InferTypes(&graph_, environment_.operators());
  }

  // What is compared with labels.
  absl::Status ResolveOutputs() {
    std::vector<LossTerm> terms = options_.losses;
    if (terms.empty()) terms.push_back({.spec = options_.loss});
    ONWARD_ASSIGN_OR_RETURN(losses_, ResolveLosses(terms, options_.output, graph_));
    outputs_ = ComparedOutputs(losses_);
    output_ = outputs_[0];
    const bool chosen = !options_.output.empty() || !terms[0].outputs.empty();
    if (!chosen && output_ != graph_.outputs[0].name) {
      Note(absl::StrCat("trains output '", output_, "': '", graph_.outputs[0].name, "' is ",
                        graph_.outputs[0].type.ToString()));
    }
    return absl::OkStatus();
  }

  // What scikit-learn's converters write, in a form that can be trained.
  absl::Status OpenLearnedModels() {
    for (const std::string& name : DropZipMaps(&graph_)) {
      Note(absl::StrCat("output '", name,
                        "' is the scores of the classes; it was a dictionary "
                        "(ZipMap)"));
      rewritten_ = true;
    }
    ONWARD_ASSIGN_OR_RETURN(const std::vector<std::string> opened,
                            OpenLinearModels(environment_.operators(), &graph_));
    for (const std::string& node : opened) {
      Note(absl::StrCat(node, ": its weights, which were attributes, are initializers"));
      rewritten_ = true;
    }
    return absl::OkStatus();
  }

  void DropInitializersFromInputs() {
    std::erase_if(graph_.inputs,
                  [&](const NamedType& in) { return graph_.initializers.contains(in.name); });
  }

  absl::Status BuildAlgorithm() {
    // Built on top of the inference graph, then cut off it.
    Graph work = graph_;
    const size_t inference_nodes = work.nodes.size();
    ONWARD_RETURN_IF_ERROR(AddLoss(&work));
    y_ = loss_;
    if (options_.precision == DType::kFloat16) {
      GraphBuilder b(&work, &environment_.operators(), "train");
      scale_.emplace(b, &state_);
      y_ = b.Named(scale_->Scaled(b.Value(loss_)), b.UniqueName("scaled_loss")).name();
      ONWARD_RETURN_IF_ERROR(b.status());
    }
    std::vector<std::string> gradients;
    if (options_.gradient == GradientForm::kOperator) {
      GraphBuilder b(&work, &environment_.operators(), "train");
      gradients = AddGradientNode(b);
      ONWARD_RETURN_IF_ERROR(b.status());
      // The node is only a promise: make sure it can be kept.
      ONWARD_RETURN_IF_ERROR(ExpandGradients(work, environment_).status());
    } else {
      ONWARD_ASSIGN_OR_RETURN(Gradients result,
                              Differentiate(work, y_, variables_, Differentiating()));
      work = std::move(result.graph);
      gradients = result.values;
    }
    ONWARD_RETURN_IF_ERROR(AddUpdates(gradients, &work));
    if (options_.gradient == GradientForm::kExpanded) {
      ONWARD_RETURN_IF_ERROR(ExpandTail(&work));
    }
    return CutAlgorithm(inference_nodes, std::move(work));
  }

  DifferentiateOptions Differentiating() const {
    DifferentiateOptions options;
    options.operators = &environment_.operators();
    options.rules = &environment_.rules();
    return options;
  }

  // The forward pass that is trained, and its loss.
  absl::Status AddLoss(Graph* graph) {
    Graph& work = *graph;
    const TrainingModes modes = {.freeze_statistics = options_.freeze_statistics};
    Renaming trained;
    ChooseVariables(&work);
    if (NeedsTrainingForward(graph_, outputs_, modes)) {
      TrainingForward forward = CopyForward(graph_, outputs_, modes);
      for (Node& node : forward.nodes) work.nodes.push_back(std::move(node));
      state_.bindings() = forward.statistics;
      Note(
          "the algorithm holds a training-mode copy of the forward pass (BatchNormalization, "
          "Dropout)");
      ONWARD_RETURN_IF_ERROR(InferTypes(&work, environment_.operators()));
      for (size_t i = 0; i < outputs_.size(); ++i) {
        trained[outputs_[i]] = forward.outputs[i];
        // The copy has the shape of the original, also where only its declaration tells.
        if (const ValueType* type = work.TypeOf(outputs_[i])) {
          work.types[forward.outputs[i]] = *type;
        }
      }
    }
    if (options_.precision != DType::kUndefined) {
      ONWARD_RETURN_IF_ERROR(LowerForward(&trained, &work));
    }
    for (const std::string& output : outputs_) train_outputs_.push_back(Renamed(trained, output));
    std::vector<std::string> labels = {options_.label};
    labels.insert(labels.end(), options_.more_labels.begin(), options_.more_labels.end());
    ONWARD_ASSIGN_OR_RETURN(WrittenLoss written,
                            WriteLosses(losses_, trained, labels, environment_, &work));
    loss_ = written.loss;
    parts_ = std::move(written.parts);
    labels_ = std::move(written.labels);
    return absl::OkStatus();
  }

  // The optimizer works on the weights, or on master copies of them.
  void ChooseVariables(Graph* work) {
    GraphBuilder b(work, &environment_.operators(), "train");
    for (const std::string& name : trained_) {
      const Tensor& weight = graph_.initializers.at(name);
      const bool narrow = weight.dtype() == DType::kFloat16 || weight.dtype() == DType::kBFloat16;
      TrainedWeight trained{name, name, weight.dtype()};
      if (narrow && options_.precision != DType::kUndefined) {
        const Expr master = state_.AddLike(b, absl::StrCat(name, "__master"), name,
                                           RoundedTo(DType::kFloat, weight), kMasterOfKey);
        masters_[name] = master.name();
        trained = {name, master.name(), DType::kFloat};
      }
      variables_.push_back(trained.variable);
      weights_trained_.push_back(std::move(trained));
    }
  }

  // Puts a copy of the forward pass that computes in the lower precision behind the one that is
  // there.
  absl::Status LowerForward(Renaming* trained, Graph* work) {
    std::vector<WantedValue> wanted;
    for (const std::string& output : outputs_) {
      wanted.push_back({Renamed(*trained, output), DType::kFloat});
    }
    for (const Binding& b : state_.bindings()) {
      wanted.push_back({b.value, graph_.initializers.at(b.variable).dtype()});
    }
    LoweredForward forward =
        LowerPrecision(*work, wanted, options_.precision, masters_, environment_.operators());
    if (forward.products == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("no product or convolution of the model can be computed in ",
                       DTypeName(options_.precision), "; leave --precision out"));
    }
    for (Node& node : forward.nodes) work->nodes.push_back(std::move(node));
    ONWARD_RETURN_IF_ERROR(InferTypes(work, environment_.operators()));
    for (size_t i = 0; i < outputs_.size(); ++i) {
      // The shape is that of the original, also where only its declaration tells.
      if (const ValueType* type = work->TypeOf(outputs_[i])) {
        ValueType wide = *type;
        wide.dtype = DType::kFloat;
        work->types[forward.values[i]] = std::move(wide);
      }
      (*trained)[outputs_[i]] = forward.values[i];
    }
    for (size_t i = 0; i < state_.bindings().size(); ++i) {
      state_.bindings()[i].value = forward.values[outputs_.size() + i];
    }
    Note(absl::StrCat(forward.products, " products and convolutions compute in ",
                      DTypeName(options_.precision), ", the optimizer in float",
                      masters_.empty() ? "" : " (master copies of the weights)"));
    return absl::OkStatus();
  }

  std::vector<std::string> AddGradientNode(GraphBuilder& b) {
    Node node;
    node.op_type = "Gradient";
    node.domain = std::string(kTrainingDomain);
    node.name = "gradient";
    node.inputs = variables_;
    node.attributes["xs"] = variables_;
    node.attributes["y"] = y_;
    for (const std::string& x : variables_)
      node.outputs.push_back(b.UniqueName(absl::StrCat(x, "__grad")));
    std::vector<std::string> outputs = node.outputs;
    b.Append(std::move(node));
    return outputs;
  }

  absl::Status AddUpdates(const std::vector<std::string>& gradients, Graph* work) {
    ONWARD_ASSIGN_OR_RETURN(rate_, WriteUpdate({options_, weights_, graph_, weights_trained_,
                                                gradients, scale_, environment_},
                                               &state_, work));
    return absl::OkStatus();
  }

  // Standard operators only.
  absl::Status ExpandTail(Graph* work) const {
    ONWARD_ASSIGN_OR_RETURN(Graph inlined, InlineOwnFunctions(*work, environment_));
    *work = std::move(inlined);
    return absl::OkStatus();
  }

  // Whether the algorithm has to compute the node itself: what the inference graph gives is
  // there already. A node of it that differentiation made give more (the states of a Loop)
  // runs once more, since the inference graph stays as it is.
  static bool TakeOver(const absl::flat_hash_set<std::string>& inference_outputs, NameScope* names,
                       Node* node) {
    const auto given = [&](const std::string& o) { return inference_outputs.contains(o); };
    if (std::all_of(node->outputs.begin(), node->outputs.end(),
                    [&](const std::string& o) { return o.empty() || given(o); })) {
      return false;
    }
    for (std::string& out : node->outputs) {
      if (!out.empty() && given(out)) out = names->Unique(absl::StrCat(out, "__again"));
    }
    return true;
  }

  absl::Status CutAlgorithm(size_t inference_nodes, Graph work) {
    Graph& algorithm = entry_.algorithm;
    algorithm.name = "algorithm";
    algorithm.opsets = work.opsets;
    for (NamedType& in : work.inputs) {
      const bool label = std::find(labels_.begin(), labels_.end(), in.name) != labels_.end();
      if (label) algorithm.inputs.push_back(in);
    }
    state_.AddTo(&entry_);
    absl::flat_hash_set<std::string> inference_outputs;
    for (size_t i = 0; i < inference_nodes; ++i) {
      inference_outputs.insert(graph_.nodes[i].outputs.begin(), graph_.nodes[i].outputs.end());
    }
    std::vector<std::string> wanted = {loss_, rate_};
    wanted.insert(wanted.end(), parts_.begin(), parts_.end());
    for (const Binding& b : entry_.update_bindings) wanted.push_back(b.value);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (train_outputs_[i] != outputs_[i]) wanted.push_back(train_outputs_[i]);
    }
    std::vector<std::string> needed = wanted;
    // The Gradient node reads it by its name alone.
    if (options_.gradient == GradientForm::kOperator) needed.push_back(y_);
    Prune(&work, needed);
    NameScope names(work);
    for (Node& node : work.nodes) {
      if (!TakeOver(inference_outputs, &names, &node)) continue;
      for (const std::string& out : node.outputs) {
        if (const ValueType* t = work.TypeOf(out)) algorithm.types[out] = *t;
      }
      algorithm.nodes.push_back(std::move(node));
    }
    absl::flat_hash_set<std::string> listed;
    for (const std::string& name : wanted) {
      if (!listed.insert(name).second) continue;
      const ValueType* type = work.TypeOf(name);
      algorithm.outputs.push_back({name, type == nullptr ? ValueType{} : *type});
    }
    ONWARD_RETURN_IF_ERROR(CarryFunctions(algorithm.nodes));
    AddInitialization(graph_, trained_, state_.starts(), &entry_);
    state_.InitializeLikeWeights(&entry_);
    return absl::OkStatus();
  }

  // Our own functions that the nodes call, those in bodies included, go into the file.
  absl::Status CarryFunctions(const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
      absl::Status inside;
      ForEachBody(node, [&](const std::string&, const Graph& body) {
        inside.Update(CarryFunctions(body.nodes));
      });
      ONWARD_RETURN_IF_ERROR(inside);
      const FunctionKey key{node.domain, node.op_type, ""};
      if (node.domain != kOnwardDomain || entry_.algorithm.functions.contains(key)) continue;
      ONWARD_ASSIGN_OR_RETURN(Function function, FileFunction(environment_.functions(), node));
      entry_.algorithm.functions.emplace(key, std::make_shared<Function>(std::move(function)));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<AuthorResult> Assemble() {
    Model model = source_;
    if (rewritten_) {
      model = RebuildLike(source_, graph_, std::max(source_.ir_version(), kWrittenIr));
    } else if (model.ir_version() < kWrittenIr) {
      model.set_ir_version(kWrittenIr);
    }
    AddTrainingEntry(entry_, &model);
    model.SetMetadata(kMetaLoss, loss_);
    // What is evaluated: the first loss, where it compares one output with labels.
    LossTerm first = losses_[0].term;
    first.weight = 1;
    if (first.outputs.size() == 1) first.outputs.clear();
    model.SetMetadata(kMetaLossSpec, LossTermText(first));
    model.SetMetadata(kMetaOutput, output_);
    model.SetMetadata(kMetaTrainOutput, train_outputs_[0]);
    if (!labels_.empty()) model.SetMetadata(kMetaLabel, labels_[0]);
    model.SetMetadata(kMetaRandomSeed, absl::StrCat(options_.seed));
    model.SetMetadata(kMetaRandomStep, "0");
    if (scale_.has_value()) model.SetMetadata(kMetaLossScale, scale_->name());
    for (const std::string& note : weights_.notes()) Note(note);
    return AuthorResult{std::move(model), trained_, weights_.decisions(), notes_};
  }

  void Note(std::string text) { notes_.push_back(std::move(text)); }

  const Model& source_;
  const AuthorOptions& options_;
  const Environment& environment_;
  Graph graph_;
  bool rewritten_ = false;
  std::vector<ResolvedLoss> losses_;
  std::string output_, loss_, rate_;
  std::string y_;  // what is differentiated: the loss, or a multiple of it
  std::vector<std::string> outputs_, train_outputs_, parts_, labels_, trained_, notes_;
  std::vector<std::string> variables_;  // what the loss is differentiated by, for each of trained_
  WeightChoice weights_;
  std::vector<TrainedWeight> weights_trained_;
  Renaming masters_;  // weight -> its master copy
  std::optional<LossScale> scale_;
  AlgorithmState state_;
  TrainingEntry entry_;
};

}  // namespace

absl::StatusOr<GradientReport> ReportTraining(const Model& model, const AuthorOptions& options,
                                              const Environment& environment) {
  auto report = Author(model, options, environment).Report();
  if (!report.ok()) return Annotate(report.status(), absl::StrCat("'", model.path(), "'"));
  return report;
}

absl::StatusOr<AuthorResult> MakeTrainable(const Model& model, const AuthorOptions& options,
                                           const Environment& environment) {
  auto result = Author(model, options, environment).Run();
  if (!result.ok()) return Annotate(result.status(), absl::StrCat("'", model.path(), "'"));
  return result;
}

}  // namespace onward
