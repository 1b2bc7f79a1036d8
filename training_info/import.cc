// SPDX-License-Identifier: Apache-2.0
#include "training_info/import.h"

#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/onnx_io/proto.h"
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

int64_t WholeNumber(const std::string& text) {
  int64_t value = 0;
  return absl::SimpleAtoi(text, &value) ? value : -1;
}

EntryRate ReadRate(const onnx::GraphProto& algorithm) {
  EntryRate rate;
  std::string every = "1", phase = "0";
  for (const auto& p : algorithm.metadata_props()) {
    if (p.key() == kMetaEvery) every = p.value();
    if (p.key() == kMetaPhase) phase = p.value();
  }
  rate.every = WholeNumber(every);
  rate.phase = WholeNumber(phase);
  if (rate.every < 1 || rate.phase < 0 || rate.phase >= rate.every) {
    rate.problem = absl::StrCat(kMetaEvery, " is '", every, "' and ", kMetaPhase, " is '", phase,
                                "': every n-th iteration, from one below n, is meant");
  }
  return rate;
}

Finding Unreadable(const absl::Status& status, const std::string& place) {
  const bool data =
      status.code() == absl::StatusCode::kNotFound || status.code() == absl::StatusCode::kDataLoss;
  return {data ? "missing-data" : "unreadable-graph", place, std::string(status.message()),
          data ? "put the file with the data beside the model" : "write the graph again"};
}

// Where nodes stand before what they read. Cycles are others' business.
void AddOrder(const absl::StatusOr<Graph>& graph, const std::string& place,
              std::vector<Finding>* findings) {
  if (!graph.ok()) return;
  Graph sorted = *graph;
  if (!SortNodes(&sorted).ok()) return;
  for (Finding& finding : Verify(*graph)) {
    if (finding.rule != "not-sorted") continue;
    finding.place = absl::StrCat(place, ": ", finding.place);
    finding.fix = "order the nodes topologically (onward check --fix -o OUT does)";
    findings->push_back(std::move(finding));
  }
}

}  // namespace

std::vector<Finding> CheckLists(const Model& model) {
  std::vector<Finding> findings;
  std::set<FunctionKey> functions;
  for (const auto& f : model.proto().functions()) {
    if (functions.insert({f.domain(), f.name(), f.overload()}).second) continue;
    findings.push_back({"duplicate-function", "model",
                        absl::StrCat("function ", f.domain(), ".", f.name(), " is defined twice"),
                        "keep one of them"});
  }
  for (const auto& f : model.proto().functions()) {
    auto function = FunctionFromProto(f, nullptr);
    if (!function.ok()) continue;
    AddOrder(std::move(function->body), absl::StrCat("function ", f.domain(), ".", f.name()),
             &findings);
  }
  AddOrder(OtherGraph(model, model.proto().graph()), "model", &findings);
  for (int k = 0; k < model.proto().training_info_size(); ++k) {
    const onnx::TrainingInfoProto& info = model.proto().training_info(k);
    const std::string place = absl::StrCat("training_info[", k, "].");
    AddOrder(OtherGraph(model, info.initialization()), place + "initialization", &findings);
    AddOrder(OtherGraph(model, info.algorithm()), place + "algorithm", &findings);
  }
  return findings;
}

absl::StatusOr<TrainingSpec> ImportTraining(const Model& model, ImportMode mode) {
  TrainingSpec spec;
  ONWARD_ASSIGN_OR_RETURN(spec.inference, InferenceGraph(model));
  CompleteDomains(&spec.inference);
  auto note_sparse = [&](const onnx::GraphProto& graph) {
    for (const auto& t : graph.sparse_initializer()) spec.sparse.insert(t.values().name());
  };
  note_sparse(model.proto().graph());
  if (mode == ImportMode::kInference) return spec;
  if (model.training_damaged()) {
    spec.problems.push_back({"damaged-training", "training_info",
                             "its bytes are no TrainingInfoProto", "write the file again"});
  }
  int index = 0;
  for (const onnx::TrainingInfoProto& info : model.proto().training_info()) {
    TrainingEntry entry;
    auto read = [&](const onnx::GraphProto& proto, const char* what, Graph* graph) {
      const std::string place = absl::StrCat("training_info[", index, "].", what);
      auto parsed = OtherGraph(model, proto);
      if (!parsed.ok() && mode == ImportMode::kBoth) {
        spec.problems.push_back(Unreadable(parsed.status(), place));
        entry.readable = false;
        return absl::OkStatus();
      }
      if (!parsed.ok())
        return Annotate(parsed.status(), absl::StrCat("'", model.path(), "', ", place));
      // What cannot be sorted stays as it is: validation names the cycle.
      Graph sorted = *parsed;
      *graph = SortNodes(&sorted).ok() ? std::move(sorted) : *std::move(parsed);
      CompleteDomains(graph);
      return absl::OkStatus();
    };
    ONWARD_RETURN_IF_ERROR(read(info.initialization(), "initialization", &entry.initialization));
    ONWARD_RETURN_IF_ERROR(read(info.algorithm(), "algorithm", &entry.algorithm));
    note_sparse(info.algorithm());
    entry.initialization_bindings = ReadBindings(info.initialization_binding());
    entry.update_bindings = ReadBindings(info.update_binding());
    entry.rate = ReadRate(info.algorithm());
    spec.entries.push_back(std::move(entry));
    ++index;
  }
  return spec;
}

}  // namespace onward
