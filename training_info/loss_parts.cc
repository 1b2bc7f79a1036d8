// SPDX-License-Identifier: Apache-2.0
#include "training_info/loss_parts.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/cast_node.h"
#include "core/graph/name_scope.h"
#include "core/graph/rename.h"
#include "core/graph/verify.h"
#include "training_info/author_loss.h"
#include "training_info/combine.h"
#include "training_info/step.h"

namespace onward {
namespace {

std::string KeyOf(size_t number) { return absl::StrCat(kMetaLossSpec, "_", number); }

void StoreList(const std::string& key, const std::vector<std::string>& values, Model* model) {
  for (size_t i = 0; i < values.size(); ++i) {
    model->SetMetadata(absl::StrCat(key, "_", i + 1), values[i]);
  }
}

std::vector<std::string> StoredList(const std::string& key, const Model& model) {
  std::vector<std::string> values;
  while (true) {
    std::string value = model.Metadata(absl::StrCat(key, "_", values.size() + 1));
    if (value.empty()) return values;
    values.push_back(std::move(value));
  }
}

// What the keys for one loss at one output tell.
std::optional<LossParts> StoredFirst(const Model& model) {
  const std::string output = model.Metadata(kMetaOutput);
  auto term = ParseLossTerm(model.Metadata(kMetaLossSpec));
  if (!term.ok() || !term->file.empty() || term->outputs.size() > 1) return std::nullopt;
  const std::string loss = model.Metadata(kMetaLoss), label = model.Metadata(kMetaLabel);
  const std::string trained = model.Metadata(kMetaTrainOutput);
  LossPart part{
      .term = *std::move(term), .value = loss, .compared = {trained.empty() ? output : trained}};
  part.term.outputs = {output};
  if (!label.empty()) part.labels.push_back(label);
  return LossParts{loss, {std::move(part)}};
}

}  // namespace

void StoreLosses(const LossParts& losses, Model* model) {
  const LossPart& first = losses.parts[0];
  LossTerm term = first.term;
  term.weight = 1;
  if (term.outputs.size() == 1) term.outputs.clear();
  model->SetMetadata(kMetaLoss, losses.sum);
  model->SetMetadata(kMetaLossSpec, LossTermText(term));
  model->SetMetadata(kMetaOutput, first.term.outputs[0]);
  model->SetMetadata(kMetaTrainOutput, first.compared[0]);
  for (const LossPart& part : losses.parts) {
    if (part.labels.empty()) continue;
    model->SetMetadata(kMetaLabel, part.labels[0]);
    break;
  }
  const bool plain =
      losses.parts.size() == 1 && first.term.file.empty() && first.term.outputs.size() == 1;
  if (plain && first.term.weight == 1) return;
  for (size_t i = 0; i < losses.parts.size(); ++i) {
    const LossPart& part = losses.parts[i];
    const std::string key = KeyOf(i + 1);
    LossTerm bare = part.term;
    bare.outputs.clear();
    model->SetMetadata(key, LossTermText(bare));
    model->SetMetadata(absl::StrCat(key, ".value"), part.value);
    StoreList(absl::StrCat(key, ".output"), part.term.outputs, model);
    StoreList(absl::StrCat(key, ".training_output"), part.compared, model);
    StoreList(absl::StrCat(key, ".label"), part.labels, model);
  }
}

std::optional<LossParts> StoredLosses(const Model& model) {
  if (model.Metadata(KeyOf(1)).empty()) return StoredFirst(model);
  LossParts losses{model.Metadata(kMetaLoss), {}};
  for (size_t number = 1;; ++number) {
    const std::string key = KeyOf(number), text = model.Metadata(key);
    if (text.empty()) return losses;
    auto term = ParseLossTerm(text);
    if (!term.ok()) return std::nullopt;
    LossPart part{.term = *std::move(term), .value = model.Metadata(absl::StrCat(key, ".value"))};
    part.term.outputs = StoredList(absl::StrCat(key, ".output"), model);
    part.compared = StoredList(absl::StrCat(key, ".training_output"), model);
    part.labels = StoredList(absl::StrCat(key, ".label"), model);
    if (part.term.outputs.empty() || part.compared.size() != part.term.outputs.size()) {
      return std::nullopt;
    }
    losses.parts.push_back(std::move(part));
  }
}

absl::StatusOr<LossParts> AddLosses(const std::vector<LossTerm>& terms, const std::string& output,
                                    const std::string& label, const Environment& environment,
                                    Graph* graph) {
  ONWARD_ASSIGN_OR_RETURN(const std::vector<ResolvedLoss> losses,
                          ResolveLosses(terms, output, *graph));
  ONWARD_ASSIGN_OR_RETURN(WrittenLoss written,
                          WriteLosses(losses, {}, {label}, environment, graph));
  return std::move(written.losses);
}

namespace {

// What stands for the value that training compares: an output of inference, in the type of the
// value (a loss is float, also where the model is of 16 bits).
std::string InferredFor(const std::string& compared, const std::string& output, Graph* graph) {
  const auto dtype = [&](const std::string& name) {
    const auto it = std::find_if(graph->outputs.begin(), graph->outputs.end(),
                                 [&](const NamedType& out) { return out.name == name; });
    return it == graph->outputs.end() ? DType::kUndefined : it->type.dtype;
  };
  const DType trained = dtype(compared), inferred = dtype(output);
  const bool known = trained != DType::kUndefined && inferred != DType::kUndefined;
  if (!known || trained == inferred) return output;
  const std::string cast = NameScope(*graph).Unique(absl::StrCat(output, "__compared"));
  graph->nodes.push_back(CastNode(output, cast, trained));
  return cast;
}

}  // namespace

absl::StatusOr<Graph> LossGraph(const TrainingSpec& spec, LossParts* losses) {
  ONWARD_ASSIGN_OR_RETURN(Graph graph, Combine(spec, 0));
  Renaming inferred;
  std::vector<std::string> wanted = {losses->sum};
  for (LossPart& part : losses->parts) {
    wanted.push_back(part.value);
    for (size_t i = 0; i < part.compared.size(); ++i) {
      if (part.compared[i] == part.term.outputs[i] || inferred.contains(part.compared[i])) continue;
      inferred[part.compared[i]] = InferredFor(part.compared[i], part.term.outputs[i], &graph);
    }
    part.compared = part.term.outputs;
  }
  for (Node& node : graph.nodes) RenameReads(inferred, &node);
  ONWARD_RETURN_IF_ERROR(SortNodes(&graph));
  for (const std::string& value : wanted) {
    if (!graph.IsOutput(value)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the metadata name '", value, "' as a loss, which is no output of training_info[0]"));
    }
  }
  std::erase_if(graph.outputs, [&](const NamedType& out) {
    return !spec.inference.IsOutput(out.name) &&
           std::find(wanted.begin(), wanted.end(), out.name) == wanted.end();
  });
  for (const NamedType& out : spec.inference.outputs) wanted.push_back(out.name);
  Prune(&graph, wanted);
  return graph;
}

}  // namespace onward
