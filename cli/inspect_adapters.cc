// SPDX-License-Identifier: Apache-2.0
#include "cli/inspect_adapters.h"

#include <iostream>
#include <set>

#include "training_info/adapters/insert.h"
#include "training_info/weights/weights.h"

namespace onward {

AdapterFacts GatherAdapterFacts(const TrainingSpec& spec, const Graph& graph) {
  AdapterFacts facts;
  for (const Adapter& adapter : FindAdapters(graph)) {
    facts.adapters.push_back({adapter, graph.initializers.at(adapter.a).shape(),
                              graph.initializers.at(adapter.b).shape()});
  }
  std::set<std::string> updated;
  for (const TrainingEntry& entry : spec.entries) {
    for (const Binding& b : entry.update_bindings) updated.insert(b.variable);
  }
  for (const std::string& name : RunningStatistics(graph)) updated.erase(name);
  facts.has_training = !updated.empty();
  for (const auto& [name, tensor] : graph.initializers) {
    if (!IsFloating(tensor.dtype())) continue;
    (updated.contains(name) ? facts.trained : facts.frozen) += tensor.elements();
    if (updated.contains(name)) facts.learning.push_back(name);
  }
  std::set<std::string> counted;
  for (const Target& target : FindTargets(graph, [](const std::string&) { return false; })) {
    const bool floats = graph.initializers.contains(target.site.key.source) &&
                        IsFloating(graph.initializers.at(target.site.key.source).dtype());
    if (target.site.quantized && !floats && counted.insert(target.site.key.source).second)
      facts.frozen += target.site.shape.elements();
  }
  return facts;
}

void PrintAdapterFacts(const AdapterFacts& facts) {
  if (!facts.adapters.empty()) {
    std::cout << "adapters: " << facts.adapters.size() << "\n";
    for (const auto& [adapter, a, b] : facts.adapters) {
      std::cout << "  " << adapter.ToString() << ": rank " << adapter.rank << ", alpha "
                << adapter.alpha;
      if (adapter.dropout > 0) std::cout << ", dropout " << adapter.dropout;
      std::cout << ", " << adapter.a << a.ToString() << ", " << adapter.b << b.ToString() << "\n";
    }
  }
  if (!facts.has_training) return;
  std::cout << "trained parameters: " << facts.trained << ", frozen: " << facts.frozen << "\n";
}

void WriteAdapterFacts(const AdapterFacts& facts, JsonWriter* w) {
  w->Key("adapters").BeginArray();
  for (const auto& [adapter, a, b] : facts.adapters) {
    w->BeginObject().Field("weight", adapter.target).Field("use", adapter.use);
    w->Field("a", adapter.a).Field("b", adapter.b).Field("rank", adapter.rank);
    w->Field("alpha", adapter.alpha).Field("dropout", adapter.dropout);
    w->Field("parameters", a.elements() + b.elements()).EndObject();
  }
  w->EndArray();
  if (!facts.has_training) return;
  w->Key("trained").Values(facts.learning);
  w->Field("trained_parameters", facts.trained).Field("frozen_parameters", facts.frozen);
}

}  // namespace onward
