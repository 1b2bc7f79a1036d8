// SPDX-License-Identifier: Apache-2.0
#include "training_info/import.h"

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "onnx/onnx_pb.h"

namespace onward {
namespace {

template <typename Repeated>
std::vector<Binding> ReadBindings(const Repeated& entries) {
  std::vector<Binding> bindings;
  for (const auto& e : entries) bindings.push_back({e.key(), e.value()});
  return bindings;
}

// One exporter writes Gradient's domain without its last part.
constexpr char kShortTrainingDomain[] = "ai.onnx.preview";

void CompleteDomains(Graph* graph) {
  if (!graph->opsets.contains(kShortTrainingDomain)) return;
  graph->opsets.emplace(kTrainingDomain, 1);
  for (Node& node : graph->nodes) {
    if (node.Is("Gradient", kShortTrainingDomain)) node.domain = std::string(kTrainingDomain);
  }
}

}  // namespace

absl::StatusOr<TrainingSpec> ImportTraining(const Model& model) {
  TrainingSpec spec;
  ONWARD_ASSIGN_OR_RETURN(spec.inference, InferenceGraph(model));
  CompleteDomains(&spec.inference);
  auto note_sparse = [&](const onnx::GraphProto& graph) {
    for (const auto& t : graph.sparse_initializer()) spec.sparse.insert(t.values().name());
  };
  note_sparse(model.proto().graph());
  int index = 0;
  for (const onnx::TrainingInfoProto& info : model.proto().training_info()) {
    TrainingEntry entry;
    auto read = [&](const onnx::GraphProto& proto, const char* what, Graph* graph) {
      auto parsed = OtherGraph(model, proto);
      if (!parsed.ok()) {
        return Annotate(parsed.status(),
                        absl::StrCat("'", model.path(), "', training_info[", index, "].", what));
      }
      *graph = *std::move(parsed);
      CompleteDomains(graph);
      return absl::OkStatus();
    };
    ONWARD_RETURN_IF_ERROR(read(info.initialization(), "initialization", &entry.initialization));
    ONWARD_RETURN_IF_ERROR(read(info.algorithm(), "algorithm", &entry.algorithm));
    note_sparse(info.algorithm());
    entry.initialization_bindings = ReadBindings(info.initialization_binding());
    entry.update_bindings = ReadBindings(info.update_binding());
    spec.entries.push_back(std::move(entry));
    ++index;
  }
  return spec;
}

}  // namespace onward
