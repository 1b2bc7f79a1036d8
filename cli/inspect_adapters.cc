// SPDX-License-Identifier: Apache-2.0
#include "cli/inspect_adapters.h"

#include <iostream>
#include <set>

#include "training_info/adapters/insert.h"
#include "training_info/weights/weights.h"

namespace onward {

AdapterFacts GatherAdapterFacts(const TrainingSpec& spec, const Graph& typed) {
  AdapterFacts facts;
  for (const Adapter& adapter : FindAdapters(typed)) {
    facts.adapters.push_back({adapter, typed.initializers.at(adapter.a).shape(),
                              typed.initializers.at(adapter.b).shape()});
  }
  std::set<std::string> updated;
  for (const TrainingEntry& entry : spec.entries) {
    for (const Binding& b : entry.update_bindings) updated.insert(b.variable);
  }
  for (const std::string& name : RunningStatistics(typed)) updated.erase(name);
  facts.has_training = !updated.empty();
  for (const auto& [name, tensor] : typed.initializers) {
    if (!IsFloating(tensor.dtype())) continue;
    (updated.contains(name) ? facts.trained : facts.frozen) += tensor.elements();
  }
  std::set<std::string> counted;
  for (const Target& target : FindTargets(typed, [](const std::string&) { return false; })) {
    const bool floats = typed.initializers.contains(target.site.source) &&
                        IsFloating(typed.initializers.at(target.site.source).dtype());
    if (target.site.quantized && !floats && counted.insert(target.site.source).second)
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
  w->Field("trained_parameters", facts.trained).Field("frozen_parameters", facts.frozen);
}

}  // namespace onward
