// SPDX-License-Identifier: Apache-2.0
#include "training_info/validate.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/infer.h"
#include "core/graph/inline.h"
#include "training_info/combine.h"
#include "training_info/import.h"

namespace onward {
namespace {

using Findings = std::vector<Finding>;

constexpr char kMendFunction[] = "mend the function or its call";

std::string Place(int entry, const std::string& what) {
  return absl::StrCat("training_info[", entry, "].", what);
}

absl::flat_hash_set<std::string> NamesOf(const std::vector<NamedType>& values) {
  absl::flat_hash_set<std::string> names;
  for (const NamedType& v : values) names.insert(v.name);
  return names;
}

// "initialization takes no inputs".
void CheckInitializationInputs(const TrainingEntry& entry, int k, Findings* f) {
  for (const NamedType& in : entry.initialization.inputs) {
    if (entry.initialization.initializers.contains(in.name)) continue;
    f->push_back(
        {"initialization-input", Place(k, "initialization"),
         absl::StrCat("has the input '", in.name, "'; an initialization graph takes no inputs"),
         "compute it inside, for example with a random operator"});
  }
}

// A variable is assigned at most once by all update_bindings of the model, and
// at most once by each initialization_binding.
void CheckUniqueKeys(const TrainingSpec& spec, Findings* f) {
  std::map<std::string, int> updated;
  for (size_t k = 0; k < spec.entries.size(); ++k) {
    const int entry = static_cast<int>(k);
    for (const Binding& b : spec.entries[k].update_bindings) {
      auto [it, inserted] = updated.emplace(b.variable, entry);
      if (inserted) continue;
      f->push_back({"duplicate-key", Place(entry, "update_binding"),
                    absl::StrCat("assigns '", b.variable, "' again (first in training_info[",
                                 it->second, "])"),
                    "keep one binding per variable"});
    }
    std::set<std::string> initialized;
    for (const Binding& b : spec.entries[k].initialization_bindings) {
      if (initialized.insert(b.variable).second) continue;
      f->push_back({"duplicate-key", Place(entry, "initialization_binding"),
                    absl::StrCat("assigns '", b.variable, "' twice"),
                    "keep one binding per variable"});
    }
  }
}

// Keys are initializers: of the inference graph, or of an algorithm
// (initialization: the same entry's algorithm).
void CheckKeys(const TrainingSpec& spec, int k, Findings* f) {
  const TrainingEntry& entry = spec.entries[k];
  for (const Binding& b : entry.initialization_bindings) {
    if (spec.inference.initializers.contains(b.variable) ||
        entry.algorithm.initializers.contains(b.variable))
      continue;
    f->push_back({"unknown-key", Place(k, "initialization_binding"),
                  absl::StrCat("'", b.variable,
                               "' is not an initializer of the graph or of this entry's algorithm"),
                  "bind an initializer"});
  }
  for (const Binding& b : entry.update_bindings) {
    if (spec.FindInitializer(b.variable) != nullptr) continue;
    f->push_back(
        {"unknown-key", Place(k, "update_binding"),
         absl::StrCat("'", b.variable, "' is not an initializer of the graph or of an algorithm"),
         "bind an initializer"});
  }
}

// A sparse initializer cannot be assigned.
void CheckSparse(const TrainingSpec& spec, int k, Findings* f) {
  auto check = [&](const std::vector<Binding>& bindings, const char* what) {
    for (const Binding& b : bindings) {
      if (!spec.sparse.contains(b.variable)) continue;
      f->push_back({"sparse-variable", Place(k, what),
                    absl::StrCat("'", b.variable, "' is a sparse initializer"),
                    "store it as a dense one"});
    }
  };
  check(spec.entries[k].initialization_bindings, "initialization_binding");
  check(spec.entries[k].update_bindings, "update_binding");
}

// Assigning is copying bytes, which strings are not.
void CheckStrings(const TrainingSpec& spec, Findings* f) {
  for (const std::string& name : spec.StateVariables()) {
    const Tensor* variable = spec.FindInitializer(name);
    if (variable == nullptr || variable->dtype() != DType::kString) continue;
    f->push_back({"string-variable", "training_info",
                  absl::StrCat("a binding names '", name, "', a tensor of strings"),
                  "bind numbers"});
  }
}

// The inference graph must run by itself.
void CheckInference(const TrainingSpec& spec, Findings* f) {
  auto inlined = InlineFunctions(spec.inference);
  if (!inlined.ok()) {
    f->push_back({"bad-function", "graph", std::string(inlined.status().message()), kMendFunction});
    return;
  }
  for (Finding& finding : CheckGraph(*inlined)) f->push_back(std::move(finding));
}

// Values are outputs: of initialization, or of algorithm or the inference graph.
void CheckValues(const TrainingSpec& spec, int k, Findings* f) {
  const TrainingEntry& entry = spec.entries[k];
  const absl::flat_hash_set<std::string> initial = NamesOf(entry.initialization.outputs);
  for (const Binding& b : entry.initialization_bindings) {
    if (initial.contains(b.value)) continue;
    f->push_back({"unknown-value", Place(k, "initialization_binding"),
                  absl::StrCat("'", b.value, "' (for '", b.variable,
                               "') is not an output of initialization"),
                  "list it among the graph's outputs"});
  }
  const absl::flat_hash_set<std::string> computed = NamesOf(entry.algorithm.outputs),
                                         inferred = NamesOf(spec.inference.outputs);
  for (const Binding& b : entry.update_bindings) {
    if (computed.contains(b.value) || inferred.contains(b.value)) continue;
    f->push_back({"unknown-value", Place(k, "update_binding"),
                  absl::StrCat("'", b.value, "' (for '", b.variable,
                               "') is not an output of algorithm or of the model"),
                  "list it among the graph's outputs"});
  }
}

// Two algorithms may not hold different variables of one name.
void CheckAlgorithmInitializers(const TrainingSpec& spec, Findings* f) {
  const std::set<std::string> bound = spec.StateVariables();
  std::map<std::string, std::pair<int, const Tensor*>> seen;
  for (size_t k = 0; k < spec.entries.size(); ++k) {
    for (const auto& [name, tensor] : spec.entries[k].algorithm.initializers) {
      auto [it, inserted] = seen.emplace(name, std::make_pair(static_cast<int>(k), &tensor));
      if (inserted || (!bound.contains(name) && Identical(tensor, *it->second.second))) continue;
      f->push_back({"ambiguous-initializer", Place(static_cast<int>(k), "algorithm"),
                    absl::StrCat("initializer '", name, "' exists in training_info[",
                                 it->second.first, "] too"),
                    "give each its own name"});
    }
  }
}

// What the two graphs define must not clash. Where the algorithm calls the
// inference graph, only variables are common to both.
void CheckJoin(const TrainingSpec& spec, int k, Findings* f) {
  const Graph& algorithm = spec.entries[k].algorithm;
  absl::flat_hash_set<std::string> inference;
  for (const auto& [name, tensor] : spec.inference.initializers) inference.insert(name);
  if (!UsesGraphCall(algorithm)) {
    for (const NamedType& in : spec.inference.inputs) inference.insert(in.name);
    for (const Node& node : spec.inference.nodes)
      inference.insert(node.outputs.begin(), node.outputs.end());
  }
  inference.erase("");
  auto clash = [&](const std::string& name, const char* what) {
    if (!inference.contains(name)) return;
    f->push_back({"name-clash", Place(k, "algorithm"),
                  absl::StrCat(what, " '", name, "' exists in the inference graph too"),
                  "rename it"});
  };
  for (const NamedType& in : algorithm.inputs) clash(in.name, "input");
  for (const auto& [name, tensor] : algorithm.initializers) clash(name, "initializer");
  for (const Node& node : algorithm.nodes) {
    for (const std::string& out : node.outputs) clash(out, "value");
  }
}

// Unstated but necessary: a variable keeps its type and shape.
void CheckBindingTypes(const TrainingSpec& spec, int k, const Graph& graph,
                       const std::vector<Binding>& bindings, const char* what, Findings* f) {
  for (const Binding& b : bindings) {
    const Tensor* variable = spec.FindInitializer(b.variable);
    const ValueType* value = graph.TypeOf(b.value);
    if (variable == nullptr || value == nullptr || value->dtype == DType::kUndefined) continue;
    const ValueType expected = ValueType::Of(variable->dtype(), variable->shape());
    if (value->dtype == expected.dtype && ShapesFit(*value, expected)) continue;
    f->push_back({"type-mismatch", Place(k, what),
                  absl::StrCat("'", b.variable, "' is ", expected.ToString(), ", but '", b.value,
                               "' is ", value->ToString()),
                  "a variable keeps its type and shape"});
  }
}

// Import has sorted what can be sorted. Whether there is a finding.
bool CheckCircle(const Graph& graph, const std::string& place, Findings* f) {
  Graph sorted = graph;
  const absl::Status status = SortNodes(&sorted);
  if (status.ok()) return false;
  f->push_back(
      {"cycle", place, std::string(status.message()), "let one of its nodes read something else"});
  return true;
}

// The lists of the standard's optimizers are grouped by kind, so a wrong count shifts them all.
void CheckOptimizers(const Graph& graph, const std::string& place, Findings* f) {
  struct Counts {
    const char* op;
    size_t inputs, outputs;  // for each tensor, beside R and T
  };
  constexpr Counts kCounts[] = {{"Adagrad", 3, 2}, {"Momentum", 3, 2}, {"Adam", 4, 3}};
  for (const Node& node : graph.nodes) {
    for (const Counts& counts : kCounts) {
      if (!node.Is(counts.op, kTrainingDomain)) continue;
      const size_t inputs = node.inputs.size() < 2 ? 0 : node.inputs.size() - 2;
      const size_t tensors = inputs / counts.inputs;
      if (tensors > 0 && inputs % counts.inputs == 0 &&
          node.outputs.size() == tensors * counts.outputs)
        continue;
      f->push_back({"optimizer-count", absl::StrCat(place, ": graph, ", node.Describe()),
                    absl::StrCat("has ", node.inputs.size(), " inputs and ", node.outputs.size(),
                                 " outputs"),
                    absl::StrCat("give R, T and ", counts.inputs, " inputs for each tensor, and ",
                                 counts.outputs, " outputs for each")});
    }
  }
}

void CheckRate(const TrainingEntry& entry, int k, Findings* f) {
  if (entry.rate.problem.empty()) return;
  f->push_back({"bad-rate", Place(k, "algorithm"), entry.rate.problem,
                absl::StrCat("write a number from 1 into ", kMetaEvery)});
}

// A graph as it will run: its nodes, and the types of what is bound.
void CheckWhole(const TrainingSpec& spec, int k, const Graph& graph,
                const std::vector<Binding>& bindings, const char* graph_name,
                const char* binding_name, const Environment& environment, Findings* f) {
  auto inlined = InlineFunctions(graph);
  if (!inlined.ok()) {
    f->push_back({"bad-function", Place(k, graph_name), std::string(inlined.status().message()),
                  kMendFunction});
    return;
  }
  const bool circular = CheckCircle(*inlined, Place(k, graph_name), f);
  for (Finding& finding : CheckGraph(*inlined)) {
    if (circular && finding.rule == "not-sorted") continue;
    finding.place = absl::StrCat(Place(k, graph_name), ": ", finding.place);
    f->push_back(std::move(finding));
  }
  CheckOptimizers(*inlined, Place(k, graph_name), f);
  Graph typed = *std::move(inlined);
  // Types only sharpen the checks; graphs that cannot be typed are judged when run.
  if (InferTypes(&typed, environment.operators()).ok())
    CheckBindingTypes(spec, k, typed, bindings, binding_name, f);
}

void CheckAlgorithm(const TrainingSpec& spec, int k, const Environment& environment, Findings* f) {
  auto combined = Combine(spec, k);
  if (!combined.ok()) {
    f->push_back({"cannot-combine", Place(k, "algorithm"), std::string(combined.status().message()),
                  "call the model's graph by its name, with its inputs and outputs"});
    return;
  }
  CheckWhole(spec, k, *combined, spec.entries[k].update_bindings, "algorithm", "update_binding",
             environment, f);
}

}  // namespace

std::vector<Finding> ValidateTraining(const TrainingSpec& spec, const Environment& environment) {
  Findings findings = spec.problems;
  const size_t unread = findings.size();
  CheckInference(spec, &findings);
  const bool inference_stands = findings.size() == unread;
  CheckUniqueKeys(spec, &findings);
  CheckAlgorithmInitializers(spec, &findings);
  CheckStrings(spec, &findings);
  for (int k = 0; k < static_cast<int>(spec.entries.size()); ++k) {
    const TrainingEntry& entry = spec.entries[k];
    if (!entry.readable) continue;
    CheckInitializationInputs(entry, k, &findings);
    CheckRate(entry, k, &findings);
    CheckKeys(spec, k, &findings);
    CheckValues(spec, k, &findings);
    CheckSparse(spec, k, &findings);
    const size_t before = findings.size();
    CheckJoin(spec, k, &findings);
    // What is wrong with the parts, the whole would only repeat.
    if (inference_stands && findings.size() == before)
      CheckAlgorithm(spec, k, environment, &findings);
    CheckWhole(spec, k, entry.initialization, entry.initialization_bindings, "initialization",
               "initialization_binding", environment, &findings);
  }
  return findings;
}

absl::StatusOr<TrainingSpec> ValidTraining(const Model& model, const Environment& environment) {
  if (model.training_damaged()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", model.path(), "': training_info is damaged and cannot be read; ",
                     "inference works without it (run, export)"));
  }
  if (!model.has_training()) {
    return absl::FailedPreconditionError(
        absl::StrCat("'", model.path(),
                     "' has no training_info; make it trainable first: onward make-trainable ",
                     model.path(), " -o OUT --loss cross_entropy --optimizer adamw"));
  }
  ONWARD_ASSIGN_OR_RETURN(TrainingSpec spec, ImportTraining(model));
  ONWARD_RETURN_IF_ERROR(Annotate(FindingsToStatus(ValidateTraining(spec, environment)),
                                  absl::StrCat("'", model.path(), "'")));
  return spec;
}

}  // namespace onward
