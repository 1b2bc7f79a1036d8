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
#include "training_info/adapters/insert.h"
#include "training_info/author_loss.h"
#include "training_info/author_update.h"
#include "training_info/export.h"
#include "training_info/library.h"
#include "training_info/lower.h"
#include "training_info/rate.h"
#include "training_info/step.h"
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
    return ReportGradients(work, loss_, trained_, Differentiating());
  }

 private:
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
    if (graph_.opset() < kOldestWrittenOpset) {
      Note(absl::StrCat("raised the model from opset ", graph_.opset(), " to ",
                        kOldestWrittenOpset));
      ONWARD_ASSIGN_OR_RETURN(graph_, RaiseOpset(graph_, kOldestWrittenOpset));
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
    ONWARD_RETURN_IF_ERROR(InferTypes(&graph_, environment_.operators()));
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
    const size_t inference_nodes = work.nodes.size();
    ONWARD_RETURN_IF_ERROR(AddLoss(&work));
    std::vector<std::string> gradients;
    if (options_.gradient == GradientForm::kOperator) {
      GraphBuilder b(&work, &environment_.operators(), "train");
      gradients = AddGradientNode(b);
      ONWARD_RETURN_IF_ERROR(b.status());
      // The node is only a promise: make sure it can be kept.
      ONWARD_RETURN_IF_ERROR(ExpandGradients(work, environment_).status());
    } else {
      ONWARD_ASSIGN_OR_RETURN(Gradients result,
                              Differentiate(work, loss_, trained_, Differentiating()));
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
    const TrainingModes modes = {.freeze_statistics =
                                     options_.freeze_statistics || !options_.lora.empty()};
    Renaming trained;
    if (NeedsTrainingForward(graph_, outputs_, modes)) {
      TrainingForward forward = CopyForward(graph_, outputs_, modes);
      for (Node& node : forward.nodes) work.nodes.push_back(std::move(node));
      entry_.update_bindings = forward.statistics;
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
    for (const std::string& output : outputs_) train_outputs_.push_back(Renamed(trained, output));
    std::vector<std::string> labels = {options_.label};
    labels.insert(labels.end(), options_.more_labels.begin(), options_.more_labels.end());
    ONWARD_ASSIGN_OR_RETURN(WrittenLoss written,
                            WriteLosses(losses_, trained, labels, environment_, &work));
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
    node.inputs = trained_;
    node.attributes["xs"] = trained_;
    node.attributes["y"] = loss_;
    for (const std::string& x : trained_)
      node.outputs.push_back(b.UniqueName(absl::StrCat(x, "__grad")));
    std::vector<std::string> outputs = node.outputs;
    b.Append(std::move(node));
    return outputs;
  }

  absl::Status AddUpdates(const std::vector<std::string>& gradients, Graph* work) {
    ONWARD_ASSIGN_OR_RETURN(WrittenUpdate written, WriteUpdate(options_, weights_, graph_, trained_,
                                                               gradients, environment_, work));
    rate_ = written.rate;
    states_ = std::move(written.states);
    entry_.update_bindings.insert(entry_.update_bindings.end(), written.bindings.begin(),
                                  written.bindings.end());
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
    for (const auto& [name, tensor] : states_) algorithm.initializers.emplace(name, tensor);
    absl::flat_hash_set<std::string> inference_outputs;
    for (size_t i = 0; i < inference_nodes; ++i) {
      inference_outputs.insert(graph_.nodes[i].outputs.begin(), graph_.nodes[i].outputs.end());
    }
    std::vector<std::string> wanted = {loss_, rate_};
    for (const LossPart& part : written_losses_.parts) wanted.push_back(part.value);
    for (const Binding& b : entry_.update_bindings) wanted.push_back(b.value);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (train_outputs_[i] != outputs_[i]) wanted.push_back(train_outputs_[i]);
    }
    Prune(&work, wanted);
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
    for (const Node& node : algorithm.nodes) {
      if (node.domain != kOnwardDomain) continue;
      const FunctionKey key{node.domain, node.op_type, ""};
      if (algorithm.functions.contains(key)) continue;
      ONWARD_ASSIGN_OR_RETURN(Function function,
                              FileFunction(environment_.functions(), node, graph_.opset()));
      algorithm.functions.emplace(key, std::make_shared<Function>(std::move(function)));
    }
    return AddInitialization(graph_, trained_, states_, options_.init, environment_.operators(),
                             &entry_);
  }

  absl::StatusOr<AuthorResult> Assemble() {
    Model model = source_;
    if (rewritten_) {
      model = RebuildLike(source_, graph_, std::max(source_.ir_version(), kWrittenIr));
    } else if (model.ir_version() < kWrittenIr) {
      model.set_ir_version(kWrittenIr);
    }
    AddTrainingEntry(entry_, &model);
    StoreLosses(written_losses_, &model);
    StoreRate({{options_.optimizer, options_.optimizer_file, options_.optimizer_numbers},
               options_.schedule},
              &model);
    if (options_.schedule.name == kReduceOnPlateau) {
      ONWARD_RETURN_IF_ERROR(AddRateFactor(environment_, &model));
    }
    model.SetMetadata(kMetaRandomSeed, absl::StrCat(options_.seed));
    model.SetMetadata(kMetaRandomStep, "0");
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
  std::vector<std::string> outputs_, train_outputs_, labels_, trained_, notes_;
  std::vector<std::string> drawn_;  // weights that are new, and wait for their numbers
  LossParts written_losses_;
  WeightChoice weights_;
  std::vector<std::pair<std::string, Tensor>> states_;
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
