// SPDX-License-Identifier: Apache-2.0
// All that can be said of a model file: broken rules, and what is odd although it runs.
#include <algorithm>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "autograd/differentiate.h"
#include "core/base/status.h"
#include "core/graph/infer.h"
#include "core/graph/inline.h"
#include "core/onnx_io/releases.h"
#include "core/runtime/compile/unknown_operators.h"
#include "core/tensor/finite.h"
#include "training_info/body_gradients.h"
#include "training_info/combine.h"
#include "training_info/import.h"
#include "training_info/lower.h"
#include "training_info/validate.h"

namespace onward {
namespace {

using Findings = std::vector<Finding>;
using NameSet = absl::flat_hash_set<std::string>;

std::string Entry(int k, const char* what) { return absl::StrCat("training_info[", k, "].", what); }

std::set<std::string> Updated(const TrainingSpec& spec) {
  std::set<std::string> names;
  for (const TrainingEntry& entry : spec.entries) {
    for (const Binding& b : entry.update_bindings) names.insert(b.variable);
  }
  return names;
}

// What a graph looks at: inputs of nodes, what bodies capture, names in Gradient nodes, outputs.
void AddReads(const Graph& graph, NameSet* reads) {
  for (const NamedType& out : graph.outputs) reads->insert(out.name);
  for (const Node& node : graph.nodes) {
    for (std::string& value : AllInputs(node)) reads->insert(std::move(value));
    if (!IsGradient(node)) continue;
    for (const char* list : {"xs", "zs"}) {
      for (std::string& name : node.Strings(list)) reads->insert(std::move(name));
    }
  }
}

// A binding that changes nothing that anybody sees.
void CheckDeadBindings(const TrainingSpec& spec, Findings* f) {
  NameSet reads;
  AddReads(spec.inference, &reads);
  for (const TrainingEntry& entry : spec.entries) AddReads(entry.algorithm, &reads);
  for (int k = 0; k < static_cast<int>(spec.entries.size()); ++k) {
    for (const Binding& b : spec.entries[k].update_bindings) {
      const bool itself = b.value == b.variable;
      if (!itself && reads.contains(b.variable)) continue;
      f->push_back({"dead-binding", Entry(k, "update_binding"),
                    itself ? absl::StrCat("assigns '", b.variable, "' to itself")
                           : absl::StrCat("assigns '", b.variable, "', which no graph reads"),
                    itself ? "remove the binding (onward check --fix -o OUT does)"
                           : "use the variable, or remove the binding"});
    }
  }
}

// A weight that is differentiated, but stays: somebody forgot to bind it.
void CheckUnusedGradients(const TrainingSpec& spec, Findings* f) {
  const std::set<std::string> updated = Updated(spec);
  for (int k = 0; k < static_cast<int>(spec.entries.size()); ++k) {
    const Graph& algorithm = spec.entries[k].algorithm;
    for (const Node& node : algorithm.nodes) {
      if (!IsGradient(node)) continue;
      const std::vector<std::string> xs = node.Strings("xs");
      for (size_t i = 0; i < xs.size(); ++i) {
        if (!node.HasOutput(static_cast<int>(i)) || algorithm.IsOutput(node.outputs[i])) continue;
        if (updated.contains(xs[i]) || spec.FindInitializer(xs[i]) == nullptr) continue;
        f->push_back(
            {"unused-gradient", absl::StrCat(Entry(k, "algorithm"), ": graph, ", node.Describe()),
             absl::StrCat("takes the gradient by '", xs[i], "', which no update_binding changes"),
             "bind its new value, or leave it out of xs"});
      }
    }
  }
}

// A weight that is trained by a gradient that is zero whatever happens. `graph` is lowered as far
// as its Gradient nodes.
void CheckPaths(const TrainingSpec& spec, int k, const Graph& graph, const Environment& environment,
                Findings* f) {
  const std::set<std::string> updated = Updated(spec);
  Graph forward = graph;
  NameSet derived;
  std::erase_if(forward.nodes, [&](const Node& node) {
    const bool after = IsGradient(node) || absl::c_any_of(AllInputs(node), [&](const auto& value) {
                         return derived.contains(value);
                       });
    if (after) derived.insert(node.outputs.begin(), node.outputs.end());
    derived.erase("");
    return after;
  });
  forward.outputs.clear();
  DifferentiateOptions options;
  options.operators = &environment.operators();
  options.rules = &environment.rules();
  for (const Node& node : graph.nodes) {
    const std::string y = node.String("y", "");
    if (!IsGradient(node) || derived.contains(y)) continue;
    const auto report = ReportGradients(forward, y, node.Strings("xs"), options);
    if (!report.ok()) continue;  // CheckGradients has told
    for (const GradientReport::OfX& x : report->xs) {
      if (x.flow != GradientReport::Flow::kZero || !updated.contains(x.x)) continue;
      f->push_back({"no-gradient-path",
                    absl::StrCat(Entry(k, "algorithm"), ": graph, ", node.Describe()),
                    absl::StrCat("the gradient of '", y, "' by '", x.x, "' is always zero",
                                 x.reason.empty() ? "" : ": ", x.reason),
                    "train it by something that depends on it, or leave it out of xs"});
    }
  }
}

// A step refuses to assign what is not finite, so it could only fail. Not asked of a
// model before it is opened: the next step may well replace the value.
void CheckFiniteVariables(const TrainingSpec& spec, Findings* f) {
  for (int k = 0; k < static_cast<int>(spec.entries.size()); ++k) {
    for (const Binding& b : spec.entries[k].update_bindings) {
      const Tensor* variable = spec.FindInitializer(b.variable);
      if (variable == nullptr || AllFinite(*variable)) continue;
      f->push_back(
          {"non-finite-value", Entry(k, "update_binding"),
           absl::StrCat("'", b.variable, "', which training changes, holds NaN or infinity"),
           "go back to an earlier file; if the values are meant, do not train this tensor"});
    }
  }
}

// Types and operators of a graph; what `known` has already is not said again. Whether the graph
// can be lowered.
bool CheckTyped(const Graph& graph, const std::string& place, const Environment& environment,
                std::set<std::string>* known, Findings* f) {
  auto inlined = InlineFunctions(graph);
  if (!inlined.ok()) return false;
  bool sound = true;
  Findings found = CheckTypes(*inlined, environment.operators());
  for (const MissingOperator& missing :
       FindUnknown(*inlined, environment.operators(), environment.cpu())) {
    if (missing.defined) continue;
    found.push_back({"unknown-operator", "graph",
                     absl::StrCat(Describe(missing), " is defined by nobody"),
                     "name the library that defines it (--plugin LIB.so), or put a function for "
                     "it into the file"});
  }
  for (Finding& finding : found) {
    sound = sound && finding.rule == "declared-type";
    if (!known->insert(finding.ToString()).second) continue;
    if (!place.empty()) finding.place = absl::StrCat(place, ": ", finding.place);
    f->push_back(std::move(finding));
  }
  return sound;
}

// Whether the Gradient nodes can be expanded, and give anything.
void CheckGradients(const TrainingSpec& spec, int k, const Graph& combined,
                    const Environment& environment, Findings* f) {
  const absl::Status lowered = Lower(combined, environment).status();
  if (!lowered.ok()) {
    f->push_back({"bad-gradient", Entry(k, "algorithm"), std::string(lowered.message()),
                  "name tensors that y depends on through differentiable operators"});
    return;
  }
  auto inlined = InlineFunctions(combined);
  if (!inlined.ok()) return;
  auto raised = RaiseOpset(*inlined, kCanonicalOpset);
  if (!raised.ok() || !InferTypes(&*raised, environment.operators()).ok()) return;
  CheckPaths(spec, k, *raised, environment, f);
}

// What the parts say of themselves is not said of the whole.
void CheckWholes(const TrainingSpec& spec, const Environment& environment, Findings* f) {
  std::set<std::string> known;
  const bool sound = CheckTyped(spec.inference, "", environment, &known, f);
  for (int k = 0; k < static_cast<int>(spec.entries.size()); ++k) {
    auto combined = Combine(spec, k);
    if (!combined.ok()) continue;
    if (CheckTyped(*combined, Entry(k, "algorithm"), environment, &known, f) && sound)
      CheckGradients(spec, k, *combined, environment, f);
    CheckTyped(spec.entries[k].initialization, Entry(k, "initialization"), environment, &known, f);
  }
}

// The file cannot be read as a graph at all.
Findings Unreadable(const absl::Status& status, Findings findings) {
  // Said already, with its place.
  if (absl::c_any_of(findings, [](const Finding& f) { return f.rule == "duplicate-function"; }))
    return findings;
  const bool data =
      status.code() == absl::StatusCode::kNotFound || status.code() == absl::StatusCode::kDataLoss;
  const bool circular = absl::StrContains(status.message(), "cycle");
  findings.push_back({data       ? "missing-data"
                      : circular ? "cycle"
                                 : "unreadable-graph",
                      "graph", std::string(status.message()),
                      data       ? "put the file with the data beside the model"
                      : circular ? "let one of its nodes read something else"
                                 : "write the graph again"});
  return findings;
}

}  // namespace

bool IsRemark(const Finding& finding) {
  constexpr const char* kRemarks[] = {"dead-binding",     "ir-version",    "not-sorted",
                                      "no-gradient-path", "opset-version", "unused-gradient"};
  return absl::c_linear_search(kRemarks, finding.rule);
}

absl::StatusOr<std::vector<Finding>> CheckModel(const Model& model,
                                                const Environment& environment) {
  Findings findings = CheckReleases(model);
  for (Finding& finding : CheckLists(model)) findings.push_back(std::move(finding));
  auto spec = ImportTraining(model, ImportMode::kBoth);
  if (!spec.ok()) return Unreadable(spec.status(), std::move(findings));
  const Findings broken = ValidateTraining(*spec, environment);
  findings.insert(findings.end(), broken.begin(), broken.end());
  CheckFiniteVariables(*spec, &findings);
  // What is odd about graphs that break rules tells nothing.
  if (!broken.empty()) return findings;
  CheckWholes(*spec, environment, &findings);
  CheckDeadBindings(*spec, &findings);
  CheckUnusedGradients(*spec, &findings);
  return findings;
}

}  // namespace onward
