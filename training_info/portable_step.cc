// SPDX-License-Identifier: Apache-2.0
#include "training_info/portable_step.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/json.h"
#include "core/base/status.h"
#include "training_info/combine.h"
#include "training_info/export.h"
#include "training_info/lower.h"
#include "training_info/step.h"
#include "training_info/surgery/iteration.h"
#include "training_info/surgery/portable.h"
#include "training_info/validate.h"

namespace onward {
namespace {

// The training graph of an entry in standard operators.
absl::StatusOr<Graph> StepGraph(const TrainingSpec& spec, int entry,
                                const Environment& environment) {
  ONWARD_ASSIGN_OR_RETURN(Graph combined, Combine(spec, entry));
  // Where the inference graph is called, its outputs are not listed.
  for (const Binding& b : spec.entries[static_cast<size_t>(entry)].update_bindings) {
    if (!combined.IsOutput(b.value)) combined.outputs.push_back({b.value, {}});
  }
  ONWARD_ASSIGN_OR_RETURN(Graph graph, WritableGraph(combined, environment));
  ONWARD_ASSIGN_OR_RETURN(graph, ExpandGradients(graph, environment));
  return InlineOwnFunctions(graph, environment, /*optimizers=*/true);
}

std::string UpdatesText(const std::map<std::string, std::string>& updates) {
  JsonWriter w;
  w.BeginObject();
  for (const auto& [variable, value] : updates) w.Field(variable, value);
  return w.EndObject().text();
}

}  // namespace

absl::StatusOr<Model> PortableStep(const Model& model, std::optional<int> entry,
                                   const Environment& environment) {
  ONWARD_ASSIGN_OR_RETURN(const TrainingSpec spec, ValidTraining(model, environment));
  const int entries = static_cast<int>(spec.entries.size());
  if (entry.has_value() && (*entry < 0 || *entry >= entries)) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no training_info[", *entry, "]: '", model.path(), "' has ", entries,
                     entries == 1 ? " entry" : " entries", " (from 0)"));
  }
  const int begin = entry.value_or(0), end = entry.has_value() ? *entry + 1 : entries;
  std::vector<EntryGraph> graphs;
  for (int k = begin; k < end; ++k) {
    auto graph = StepGraph(spec, k, environment);
    if (!graph.ok()) {
      return Annotate(graph.status(), absl::StrCat("'", model.path(), "', training_info[", k, "]"));
    }
    const bool rests = !entry.has_value() && spec.entries[static_cast<size_t>(k)].rate.every > 1;
    graphs.push_back({k, *std::move(graph), rests});
  }
  int64_t iteration = 0;
  if (!absl::SimpleAtoi(model.Metadata(kMetaIteration), &iteration)) iteration = 0;
  auto joined = JoinEntries(spec, std::move(graphs), iteration);
  if (!joined.ok()) return Annotate(joined.status(), absl::StrCat("'", model.path(), "'"));
  Graph& graph = joined->graph;
  ONWARD_RETURN_IF_ERROR(ComputeHalvesInFloat(environment.operators(), &graph));
  ONWARD_RETURN_IF_ERROR(CopyTrainedStatistics(&graph));
  Model out = InferenceOnly(RebuildLike(model, graph, std::max(model.ir_version(), kWrittenIr)));
  out.SetMetadata(kMetaUpdates, UpdatesText(joined->updates));
  return out;
}

}  // namespace onward
