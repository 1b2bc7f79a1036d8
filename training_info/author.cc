// SPDX-License-Identifier: Apache-2.0
#include "training_info/author.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/differentiate.h"
#include "core/base/spec.h"
#include "core/base/status.h"
#include "core/graph/infer.h"
#include "core/graph/inline.h"
#include "core/graph/rename.h"
#include "core/graph/verify.h"
#include "core/onnx_io/releases.h"
#include "training_info/adapters/insert.h"
#include "training_info/author_entry.h"
#include "training_info/author_forward.h"
#include "training_info/author_loss.h"
#include "training_info/author_state.h"
#include "training_info/author_update.h"
#include "training_info/export.h"
#include "training_info/lower.h"
#include "training_info/rate.h"
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
    return ReportGradients(work, loss_, Differentiated(), Differentiating());
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
      ONWARD_ASSIGN_OR_RETURN(drawn_, ReplaceHead(&graph_, output_, options_.head_classes));
      Note(absl::StrCat("replaced the classifier (", absl::StrJoin(drawn_, ", "), ") by one with ",
                        options_.head_classes, " classes"));
      rewritten_ = true;
    }
    if (!options_.lora.empty()) ONWARD_RETURN_IF_ERROR(AddLora());
    if (rewritten_) DropInitializersFromInputs(&graph_);
    if (absl::Status typed = InferTypes(&graph_, environment_.operators()); !typed.ok()) {
      if (drawn_.empty()) return typed;
      return Annotate(typed, "what stands behind the classifier takes its old number of classes");
    }
    return DrawWeights(drawn_, options_.init, options_.seed, environment_, &graph_);
  }

  // Adapters learn, and a new head; all else is as it was, statistics included.
  absl::Status AddLora() {
    ONWARD_RETURN_IF_ERROR(InferTypes(&graph_, environment_.operators()));
    const std::set<std::string> head(drawn_.begin(), drawn_.end());
    ONWARD_ASSIGN_OR_RETURN(AddedAdapters added,
                            AddAdapters(options_.lora, weights_, outputs_, head, &graph_));
    for (const std::string& note : added.notes) Note(note);
    drawn_.insert(drawn_.end(), added.drawn.begin(), added.drawn.end());
    std::set<std::string> learning = head;
    int64_t parameters = 0;
    for (const Adapter& adapter : added.adapters) {
      for (const std::string& name : {adapter.a, adapter.b}) {
        learning.insert(name);
        parameters += graph_.initializers.at(name).elements();
      }
    }
    Note(absl::StrCat("adapters: ", added.adapters.size(), ", parameters of them: ", parameters,
                      "; the weights they stand beside stay as they are"));
    weights_.TrainOnly(std::move(learning), std::move(added.bases));
    rewritten_ = true;
    return absl::OkStatus();
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

  absl::Status BuildAlgorithm() {
    // Built on top of the inference graph, then cut off it.
    Graph work = graph_;
    ONWARD_RETURN_IF_ERROR(AddLoss(&work));
    ONWARD_RETURN_IF_ERROR(ScaleLoss(&work));
    ONWARD_ASSIGN_OR_RETURN(const std::vector<std::string> gradients, AddGradients(&work));
    ONWARD_ASSIGN_OR_RETURN(update_, WriteUpdate({options_, weights_, graph_, variables_, gradients,
                                                  scale_, environment_},
                                                 &state_, &work));
    const bool expanded = options_.gradient == GradientForm::kExpanded;
    if (expanded) {
      // Standard operators only.
      ONWARD_ASSIGN_OR_RETURN(work, InlineOwnFunctions(work, environment_));
    }
    std::vector<std::string> outputs = {loss_, update_.rate};
    for (const LossPart& part : written_losses_.parts) outputs.push_back(part.value);
    for (const Binding& binding : state_.bindings()) outputs.push_back(binding.value);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (train_outputs_[i] != outputs_[i]) outputs.push_back(train_outputs_[i]);
    }
    ONWARD_ASSIGN_OR_RETURN(entry_, CutEntry({graph_, labels_, outputs, expanded ? "" : y_}, state_,
                                             environment_, std::move(work)));
    ONWARD_RETURN_IF_ERROR(AddInitialization(graph_, trained_, state_.starts(), options_.init,
                                             environment_.operators(), &entry_));
    return state_.InitializeLikeWeights(environment_.operators(), &entry_);
  }

  // What the loss is differentiated by: the weights that learn, or their masters.
  std::vector<std::string> Differentiated() const {
    std::vector<std::string> names;
    for (const TrainedWeight& weight : variables_) names.push_back(weight.variable);
    return names;
  }

  absl::Status ScaleLoss(Graph* work) {
    y_ = loss_;
    if (options_.precision != DType::kFloat16) return absl::OkStatus();
    GraphBuilder b(work, &environment_.operators(), "train");
    scale_.emplace(b, &state_);
    y_ = b.Named(scale_->Scaled(b.Value(loss_)), b.UniqueName("scaled_loss")).name();
    return b.status();
  }

  absl::StatusOr<std::vector<std::string>> AddGradients(Graph* work) {
    if (options_.gradient == GradientForm::kOperator) {
      GraphBuilder b(work, &environment_.operators(), "train");
      std::vector<std::string> gradients = AddGradientNode(b);
      ONWARD_RETURN_IF_ERROR(b.status());
      // The node is only a promise: make sure it can be kept.
      ONWARD_RETURN_IF_ERROR(ExpandGradients(*work, environment_).status());
      return gradients;
    }
    ONWARD_ASSIGN_OR_RETURN(Gradients result,
                            Differentiate(*work, y_, Differentiated(), Differentiating()));
    *work = std::move(result.graph);
    return std::move(result.values);
  }

  DifferentiateOptions Differentiating() const {
    DifferentiateOptions options;
    options.operators = &environment_.operators();
    options.rules = &environment_.rules();
    return options;
  }

  // The forward pass that is trained, and its loss.
  absl::Status AddLoss(Graph* work) {
    ONWARD_ASSIGN_OR_RETURN(
        TrainedForward forward,
        WriteForward({options_, graph_, outputs_, trained_, environment_}, &state_, work));
    variables_ = std::move(forward.weights);
    for (const std::string& note : forward.notes) Note(note);
    for (const std::string& output : outputs_) {
      train_outputs_.push_back(Renamed(forward.outputs, output));
    }
    std::vector<std::string> labels = {options_.label};
    labels.insert(labels.end(), options_.more_labels.begin(), options_.more_labels.end());
    ONWARD_ASSIGN_OR_RETURN(WrittenLoss written,
                            WriteLosses(losses_, forward.outputs, labels, environment_, work));
    if (labels.size() > std::max<size_t>(1, written.labels.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("label '", labels.back(), "' has no loss: the losses take ",
                       written.labels.size(), " labels, ", labels.size(), " are named"));
    }
    loss_ = written.losses.sum;
    labels_ = std::move(written.labels);
    written_losses_ = std::move(written.losses);
    return absl::OkStatus();
  }

  std::vector<std::string> AddGradientNode(GraphBuilder& b) {
    Node node;
    node.op_type = "Gradient";
    node.domain = std::string(kTrainingDomain);
    node.name = "gradient";
    node.inputs = Differentiated();
    node.attributes["xs"] = node.inputs;
    node.attributes["y"] = y_;
    for (const std::string& x : node.inputs)
      node.outputs.push_back(b.UniqueName(absl::StrCat(x, "__grad")));
    std::vector<std::string> outputs = node.outputs;
    b.Append(std::move(node));
    return outputs;
  }

  absl::StatusOr<AuthorResult> Assemble() {
    Model model = source_;
    if (rewritten_) {
      model = RebuildLike(source_, graph_, std::max(source_.ir_version(), kWrittenIr));
    } else if (model.ir_version() < kWrittenIr) {
      model.set_ir_version(kWrittenIr);
    }
    AddTrainingEntry(entry_, &model);
    model.set_ir_version(std::max(model.ir_version(), NeededIrVersion(model)));
    StoreLosses(written_losses_, &model);
    StoreRate({{options_.optimizer, options_.optimizer_file, options_.optimizer_numbers},
               options_.schedule},
              &model);
    if (options_.schedule.name == kReduceOnPlateau) {
      ONWARD_RETURN_IF_ERROR(AddRateFactor(environment_, &model));
    }
    model.SetMetadata(kMetaRandomSeed, absl::StrCat(options_.seed));
    model.SetMetadata(kMetaRandomStep, "0");
    if (scale_.has_value()) model.SetMetadata(kMetaLossScale, scale_->name());
    StoreRecipe(Recipe(), &model);
    for (const std::string& note : weights_.notes()) Note(note);
    return AuthorResult{std::move(model), trained_, weights_.decisions(), notes_};
  }

  RecipeFacts Recipe() const {
    RecipeFacts facts;
    if (options_.precision != DType::kUndefined) facts.precision = DTypeName(options_.precision);
    facts.ema = options_.ema;
    facts.accumulate = options_.accumulate;
    facts.groups = update_.groups;
    std::vector<std::string> clips;
    for (const auto& [name, limit] :
         {std::pair("adaptive", options_.clip_adaptive), std::pair("value", options_.clip_value),
          std::pair("norm", options_.clip_norm)}) {
      if (limit > 0) clips.push_back(absl::StrCat(name, "=", ExactText(limit)));
    }
    facts.clip = absl::StrJoin(clips, ",");
    return facts;
  }

  void Note(std::string text) { notes_.push_back(std::move(text)); }

  const Model& source_;
  const AuthorOptions& options_;
  const Environment& environment_;
  Graph graph_;
  bool rewritten_ = false;
  std::vector<ResolvedLoss> losses_;
  std::string output_, loss_;
  WrittenUpdate update_;
  std::string y_;  // what is differentiated: the loss, or a multiple of it
  std::vector<std::string> outputs_, train_outputs_, labels_, trained_, notes_;
  std::vector<std::string> drawn_;  // weights that are new, and wait for their numbers
  LossParts written_losses_;
  WeightChoice weights_;
  std::vector<TrainedWeight> variables_;  // for each of trained_
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
