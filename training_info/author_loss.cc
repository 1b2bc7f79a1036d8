// SPDX-License-Identifier: Apache-2.0
#include "training_info/author_loss.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "training_info/author.h"
#include "training_info/foreign_graph.h"

namespace onward {
namespace {

absl::Status CheckOutput(const std::string& name, const ValueType& type) {
  if (type.dtype == DType::kUndefined || IsFloating(type.dtype)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("output '", name, "' is ", type.ToString(),
                   "; a loss needs a float output (choose another with --train-output, or name it "
                   "after an @: mse@NAME)"));
}

// The first outputs a loss can compare.
std::vector<std::string> FirstOutputs(const Graph& graph, size_t count) {
  std::vector<std::string> names = {DefaultOutput(graph)};
  for (const NamedType& out : graph.outputs) {
    if (names.size() >= count) break;
    const bool fits = out.type.dtype == DType::kUndefined || IsFloating(out.type.dtype);
    if (fits && out.name != names[0]) names.push_back(out.name);
  }
  return names;
}

absl::Status CheckNames(const LossTerm& term, const Graph& graph) {
  for (const std::string& name : term.outputs) {
    if (graph.IsOutput(name)) continue;
    std::vector<std::string> known;
    for (const NamedType& out : graph.outputs) known.push_back(out.name);
    return absl::InvalidArgumentError(absl::StrCat(
        "'", name, "' is not an output of the model; there are: ", absl::StrJoin(known, ", ")));
  }
  return absl::OkStatus();
}

// A file that computes a loss: one float scalar, of outputs and inputs of the model and of
// labels.
absl::Status CheckLossFile(const LossTerm& term, const Graph& loss) {
  const auto bad = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("loss '", term.file, "': ", what));
  };
  if (loss.outputs.size() != 1) {
    return bad(absl::StrCat("its one output is the loss; it has ", loss.outputs.size()));
  }
  const ValueType& type = loss.outputs[0].type;
  if (type.dtype != DType::kUndefined && !IsFloating(type.dtype)) {
    return bad(absl::StrCat("its output is ", type.ToString(), ", not a float scalar"));
  }
  const bool one = !type.has_rank || type.rank() == 0 ||
                   (type.rank() == 1 && (type.dims[0].value == 1 || type.dims[0].value < 0));
  if (!one) {
    return bad(absl::StrCat("its output is ", type.ToString(),
                            ", not a scalar; end it with ReduceMean <keepdims = 0>"));
  }
  if (term.outputs.empty()) {
    return bad(
        "none of its inputs has the name of an output of the model; name them as `onward inspect` "
        "lists these");
  }
  return absl::OkStatus();
}

class LossWriter {
 public:
  LossWriter(const Renaming& trained, const std::vector<std::string>& labels,
             const Environment& environment, Graph* work)
      : trained_(trained),
        label_names_(labels),
        environment_(environment),
        b_(work, &environment.operators(), "train") {}

  absl::StatusOr<WrittenLoss> Write(const std::vector<ResolvedLoss>& losses) {
    Expr sum;
    for (const ResolvedLoss& loss : losses) {
      LossPart part{.term = loss.term};
      for (const std::string& output : loss.term.outputs) {
        part.compared.push_back(Renamed(trained_, output));
      }
      ONWARD_ASSIGN_OR_RETURN(Expr value,
                              loss.graph.has_value() ? FromFile(loss, &part) : Named(loss, &part));
      // Each part can be watched by itself.
      if (losses.size() > 1) {
        part.value = b_.UniqueName(PartName(loss.term));
        value = b_.Named(value, part.value);
      }
      if (loss.term.weight != 1) value = value * loss.term.weight;
      sum = sum.defined() ? sum + CastLike(value, sum) : value;
      written_.losses.parts.push_back(std::move(part));
    }
    written_.losses.sum = b_.UniqueName("loss");
    b_.Named(sum, written_.losses.sum);
    if (losses.size() == 1) written_.losses.parts[0].value = written_.losses.sum;
    ONWARD_RETURN_IF_ERROR(b_.status());
    return written_;
  }

 private:
  static std::string PartName(const LossTerm& term) {
    return absl::StrCat("loss_", term.outputs[0]);
  }

  absl::StatusOr<Expr> Named(const ResolvedLoss& loss, LossPart* part) {
    const LossTerm& term = loss.term;
    std::vector<Expr> outputs;
    for (size_t i = 0; i < term.outputs.size(); ++i) {
      outputs.push_back(b_.Value(part->compared[i]));
      ONWARD_RETURN_IF_ERROR(CheckOutput(term.outputs[i], outputs.back().type()));
    }
    Expr label;
    if (TakesLabel(term.spec, outputs.size())) {
      label = LabelOf(term, LabelType(term.spec, outputs[0].type(), outputs.size()));
      part->labels.push_back(label.name());
    }
    return BuildLoss(b_, term.spec, outputs, label);
  }

  Expr LabelOf(const LossTerm& term, const ValueType& type) {
    for (const auto& [outputs, label] : shared_) {
      if (outputs == term.outputs && label.type() == type) return label;
    }
    shared_.emplace_back(term.outputs, NewLabel(LabelName(term), type));
    return shared_.back().second;
  }

  std::string LabelName(const LossTerm& term) const {
    const size_t next = written_.labels.size();
    if (next < label_names_.size()) return label_names_[next];
    return absl::StrCat("label_", term.outputs[0]);
  }

  Expr NewLabel(const std::string& name, const ValueType& type) {
    written_.labels.push_back(b_.UniqueName(name));
    return b_.Input(written_.labels.back(), type);
  }

  absl::StatusOr<Expr> FromFile(const ResolvedLoss& loss, LossPart* part) {
    Graph graph = *loss.graph;
    ONWARD_RETURN_IF_ERROR(FitOpset(loss.term.file, b_.graph(), &graph));
    std::vector<Expr> inputs;
    for (const NamedType& in : graph.inputs) {
      inputs.push_back(InputOf(graph, in));
      const std::string& name = inputs.back().name();
      const auto& labels = written_.labels;
      if (std::find(labels.begin(), labels.end(), name) != labels.end()) {
        part->labels.push_back(name);
      }
    }
    ONWARD_ASSIGN_OR_RETURN(
        const std::vector<Expr> outputs,
        InsertGraph(graph, absl::StrCat(PartName(loss.term), "__"), inputs, b_));
    return Reshape(outputs[0], std::vector<int64_t>{});
  }

  // By name: an output or input of the model, a label that another loss has too, the file's own
  // value, or a new label.
  Expr InputOf(const Graph& graph, const NamedType& in) {
    const auto& labels = written_.labels;
    const auto& inputs = b_.graph().inputs;
    const bool there = b_.graph().IsOutput(in.name) ||
                       std::find(labels.begin(), labels.end(), in.name) != labels.end() ||
                       std::any_of(inputs.begin(), inputs.end(),
                                   [&](const NamedType& i) { return i.name == in.name; });
    if (there) return b_.Value(Renamed(trained_, in.name));
    if (graph.initializers.contains(in.name)) return {};
    return NewLabel(in.name, in.type);
  }

  const Renaming& trained_;
  const std::vector<std::string>& label_names_;
  const Environment& environment_;
  GraphBuilder b_;
  WrittenLoss written_;
  std::vector<std::pair<std::vector<std::string>, Expr>> shared_;  // outputs, their label
};

}  // namespace

absl::StatusOr<std::vector<ResolvedLoss>> ResolveLosses(const std::vector<LossTerm>& terms,
                                                        const std::string& output,
                                                        const Graph& graph) {
  std::vector<ResolvedLoss> losses;
  for (const LossTerm& term : terms) {
    ResolvedLoss loss{term};
    if (!term.file.empty()) {
      ONWARD_ASSIGN_OR_RETURN(loss.graph, ReadForeignGraph(term.file));
      for (const NamedType& in : loss.graph->inputs) {
        if (graph.IsOutput(in.name)) loss.term.outputs.push_back(in.name);
      }
      ONWARD_RETURN_IF_ERROR(CheckLossFile(loss.term, *loss.graph));
    } else if (term.outputs.empty()) {
      const size_t count = OutputsOf(term.spec);
      loss.term.outputs = count == 1 && !output.empty() ? std::vector<std::string>{output}
                                                        : FirstOutputs(graph, count);
    }
    ONWARD_RETURN_IF_ERROR(CheckNames(loss.term, graph));
    losses.push_back(std::move(loss));
  }
  return losses;
}

std::vector<std::string> ComparedOutputs(const std::vector<ResolvedLoss>& losses) {
  std::vector<std::string> names;
  for (const ResolvedLoss& loss : losses) {
    for (const std::string& name : loss.term.outputs) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

absl::StatusOr<WrittenLoss> WriteLosses(const std::vector<ResolvedLoss>& losses,
                                        const Renaming& trained,
                                        const std::vector<std::string>& labels,
                                        const Environment& environment, Graph* work) {
  return LossWriter(trained, labels, environment, work).Write(losses);
}

}  // namespace onward
