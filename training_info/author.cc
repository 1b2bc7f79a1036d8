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
#include "optimizers/clip.h"
#include "training_info/export.h"
#include "training_info/library.h"
#include "training_info/lower.h"
#include "training_info/step.h"
#include "training_info/surgery/surgery.h"
#include "training_info/weights/choice.h"

namespace onward {
namespace {

constexpr char kStepVariable[] = "onward_step";

class Author {
 public:
  Author(const Model& model, const AuthorOptions& options, const Environment& environment)
      : source_(model),
        options_(options),
        environment_(environment),
        weights_(options.train, options.freeze) {}

  absl::StatusOr<AuthorResult> Run() {
    ONWARD_RETURN_IF_ERROR(PrepareInference());
    ONWARD_ASSIGN_OR_RETURN(trained_, weights_.Choose(output_, graph_));
    ONWARD_RETURN_IF_ERROR(BuildAlgorithm());
    return Assemble();
  }

  absl::StatusOr<GradientReport> Report() {
    ONWARD_RETURN_IF_ERROR(PrepareInference());
    ONWARD_ASSIGN_OR_RETURN(trained_, weights_.Choose(output_, graph_));
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
    output_ = options_.output.empty() ? DefaultOutput(graph_) : options_.output;
    if (options_.output.empty() && !graph_.outputs.empty() && output_ != graph_.outputs[0].name) {
      Note(absl::StrCat("trains output '", output_, "': '", graph_.outputs[0].name, "' is ",
                        graph_.outputs[0].type.ToString()));
    }
    if (!graph_.IsOutput(output_)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", output_, "' is not an output of the model"));
    }
    rewritten_ |= weights_.Prepare(output_, &graph_);
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
    std::string train_output = output_;
    if (NeedsTrainingForward(graph_, output_)) {
      TrainingForward forward = CopyForward(graph_, output_);
      for (Node& node : forward.nodes) work.nodes.push_back(std::move(node));
      train_output = forward.output;
      entry_.update_bindings = forward.statistics;
      Note(
          "the algorithm holds a training-mode copy of the forward pass (BatchNormalization, "
          "Dropout)");
      ONWARD_RETURN_IF_ERROR(InferTypes(&work, environment_.operators()));
      // The copy has the shape of the original, also where only its declaration tells.
      if (const ValueType* type = work.TypeOf(output_)) work.types[train_output] = *type;
    }
    train_output_ = train_output;
    GraphBuilder b(&work, &environment_.operators(), "train");
    const Expr output = b.Value(train_output);
    ONWARD_RETURN_IF_ERROR(CheckOutput(output.type()));
    label_ = b.UniqueName(options_.label);
    const Expr label = b.Input(label_, LabelType(options_.loss, output.type()));
    ONWARD_ASSIGN_OR_RETURN(Expr loss, BuildLoss(b, options_.loss, output, label));
    ONWARD_RETURN_IF_ERROR(b.status());
    loss_ = b.UniqueName("loss");
    b.Named(loss, loss_);
    return b.status();
  }

  absl::Status CheckOutput(const ValueType& type) const {
    if (type.dtype != DType::kUndefined && !IsFloating(type.dtype)) {
      return absl::InvalidArgumentError(
          absl::StrCat("output '", output_, "' is ", type.ToString(),
                       "; a loss needs a float output (choose another with --output)"));
    }
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
    GraphBuilder b(work, &environment_.operators(), "update");
    const int first = FirstStep(options_.optimizer);
    step_ = b.UniqueName(kStepVariable);
    AddState(step_, Tensor::Scalar<int64_t>(first), work);
    const Expr step = b.Value(step_);
    const Expr count = first == 0 ? step : step - b.Int(first);
    const DType dtype = graph_.initializers.at(trained_[0]).dtype();
    const Expr rate = b.Named(
        BuildSchedule(b, options_.schedule, OptionOf(options_.optimizer, "lr"), count, dtype),
        b.UniqueName("learning_rate"));
    rate_ = rate.name();
    std::vector<Expr> grads;
    for (const std::string& g : gradients) grads.push_back(b.Value(g));
    if (options_.clip_norm > 0) grads = ClipByGlobalNorm(b, std::move(grads), options_.clip_norm);
    std::vector<Variable> variables;
    std::vector<std::vector<std::string>> names;
    for (size_t i = 0; i < trained_.size(); ++i) {
      const Tensor& weight = graph_.initializers.at(trained_[i]);
      Variable v{b.Value(trained_[i]), grads[i], {}};
      names.push_back({trained_[i]});
      for (const StateTensor& s : States(options_.optimizer, weight.shape())) {
        const std::string name = b.UniqueName(absl::StrCat(trained_[i], s.suffix));
        Tensor start = Tensor::Zeros(weight.dtype(), *s.shape);
        if (s.initial != 0) start = Filled(start, s.initial);
        AddState(name, std::move(start), work);
        v.states.push_back(b.Value(name));
        names.back().push_back(name);
      }
      variables.push_back(std::move(v));
    }
    std::vector<std::vector<Expr>> updated;
    ONWARD_RETURN_IF_ERROR(BuildUpdate(b, options_.optimizer, rate, step, variables, &updated));
    Renaming renamed;
    for (size_t i = 0; i < updated.size(); ++i) {
      for (size_t j = 0; j < updated[i].size(); ++j) {
        const std::string name = b.UniqueName(absl::StrCat(names[i][j], "__new"));
        renamed[updated[i][j].name()] = name;
        entry_.update_bindings.push_back({names[i][j], name});
      }
    }
    // In place rather than by Identity nodes, so that an optimizer's result is
    // directly what gets bound.
    RenameEverywhere(renamed, work);
    const Expr next = b.Named(step + b.Int(1), b.UniqueName(absl::StrCat(step_, "__new")));
    entry_.update_bindings.push_back({step_, next.name()});
    return b.status();
  }

  static Tensor Filled(const Tensor& like, double value) {
    Tensor t(like.dtype(), like.shape());
    const Tensor one = ScalarOf(like.dtype(), value);
    const size_t width = DTypeBits(like.dtype()) / 8;
    for (int64_t i = 0; i < t.elements(); ++i)
      std::copy_n(one.data<char>(), width, t.data<char>() + i * width);
    return t;
  }

  void AddState(const std::string& name, Tensor start, Graph* work) {
    work->types[name] = ValueType::Of(start.dtype(), start.shape());
    work->initializers.emplace(name, start);
    states_.emplace_back(name, std::move(start));
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
      if (in.name == label_) algorithm.inputs.push_back(in);
    }
    for (const auto& [name, tensor] : states_) algorithm.initializers.emplace(name, tensor);
    absl::flat_hash_set<std::string> inference_outputs;
    for (size_t i = 0; i < inference_nodes; ++i) {
      inference_outputs.insert(graph_.nodes[i].outputs.begin(), graph_.nodes[i].outputs.end());
    }
    std::vector<std::string> wanted = {loss_, rate_};
    for (const Binding& b : entry_.update_bindings) wanted.push_back(b.value);
    if (train_output_ != output_) wanted.push_back(train_output_);
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
      ONWARD_ASSIGN_OR_RETURN(Function function, FileFunction(environment_.functions(), node));
      algorithm.functions.emplace(key, std::make_shared<Function>(std::move(function)));
    }
    AddInitialization(graph_, trained_, states_, &entry_);
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
    model.SetMetadata(kMetaLossSpec, LossText(options_.loss));
    model.SetMetadata(kMetaOutput, output_);
    model.SetMetadata(kMetaTrainOutput, train_output_);
    model.SetMetadata(kMetaLabel, label_);
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
  std::string output_, train_output_, label_, loss_, rate_, step_;
  std::vector<std::string> trained_, notes_;
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
