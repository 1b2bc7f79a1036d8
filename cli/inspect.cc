// SPDX-License-Identifier: Apache-2.0
// onward inspect: what is in a file, what would train, what cannot and why.
#include <algorithm>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "autograd/differentiate.h"
#include "cli/author_flags.h"
#include "cli/commands.h"
#include "cli/compute_flags.h"
#include "cli/inspect_adapters.h"
#include "cli/inspect_devices.h"
#include "cli/inspect_gradients.h"
#include "cli/inspect_training.h"
#include "core/base/size_text.h"
#include "core/base/status.h"
#include "core/graph/infer.h"
#include "core/graph/inline.h"
#include "core/onnx_io/model.h"
#include "trainer/report/log/jsonl.h"
#include "trainer/run/class_labels.h"
#include "training_info/author.h"
#include "training_info/import.h"
#include "training_info/step.h"
#include "training_info/surgery/surgery.h"
#include "training_info/validate.h"

namespace onward {
namespace {

// No sum of sizes is larger: it is shown as such.
constexpr int64_t kMostBytes = std::numeric_limits<int64_t>::max();
constexpr size_t kShown = 4;  // names of constants that are left for one reason

struct Facts {
  TrainingSpec spec;
  std::map<std::string, int> operators;
  int64_t parameters = 0;
  Graph graph;  // the inference graph, with weights as initializers
  int64_t parameter_bytes = 0;
  int64_t activation_bytes = 0;  // of values with a known shape
  std::vector<WeightDecision> decisions;
  std::vector<std::string> trainable;
  std::vector<std::string> classes;  // what the file calls its classes, if it does
  std::string blocked;               // why gradients cannot be derived; "" if they can
  KernelFacts run;
  AdapterFacts adapters;
  GradientReport gradients;
  std::vector<Placement> placements;  // of the graphs of the file, where a device is asked for
};

bool NamesTraining(const Args& args) {
  return args.Has("loss") || args.Has("train") || args.Has("freeze") || args.Has("train-output");
}

// Of the loss that the flags name, or of the output itself.
absl::StatusOr<GradientReport> Report(const Args& args, const Model& model, const Facts& facts,
                                      const Graph& canonical, const Environment& environment) {
  if (!NamesTraining(args)) {
    DifferentiateOptions options;
    options.operators = &environment.operators();
    options.rules = &environment.rules();
    return ReportGradients(canonical, DefaultOutput(facts.graph), facts.trainable, options);
  }
  AuthorOptions options;
  ONWARD_RETURN_IF_ERROR(ReadChoiceFlags(args, &options));
  return ReportTraining(model, options, environment);
}

// The rest of the file is there all the same.
void WarnOfBrokenTraining(const Model& model, const TrainingSpec& spec,
                          const Environment& environment) {
  if (spec.entries.empty() && spec.problems.empty()) return;
  const std::vector<Finding> findings = ValidateTraining(spec, environment);
  if (findings.empty()) return;
  std::cerr << "warning: the training of '" << model.path()
            << "' is broken: " << findings[0].ToString()
            << (findings.size() > 1 ? absl::StrCat(" (and ", findings.size() - 1, " more)") : "")
            << "; `onward check` lists all\n";
}

absl::StatusOr<Facts> Gather(const Args& args, const Model& model, const Environment& environment) {
  Facts facts;
  ONWARD_ASSIGN_OR_RETURN(facts.spec, ImportTraining(model, ImportMode::kBoth));
  WarnOfBrokenTraining(model, facts.spec, environment);
  for (const Node& node : facts.spec.inference.nodes) ++facts.operators[OperatorName(node)];
  if (auto classes = StoredClasses(model); classes.ok()) facts.classes = *std::move(classes);
  // What make-trainable would find.
  facts.graph = facts.spec.inference;
  if (!facts.graph.outputs.empty()) {
    if (auto inlined = InlineFunctions(facts.graph); inlined.ok())
      facts.graph = *std::move(inlined);
    LiftFromBodies(&facts.graph);
    facts.decisions = DecideWeights(facts.graph, {DefaultOutput(facts.graph)});
    for (const WeightDecision& d : facts.decisions) {
      if (d.trains) facts.trainable.push_back(d.name);
    }
    LiftConstants(&facts.graph, {facts.trainable.begin(), facts.trainable.end()});
  }
  const Graph& graph = facts.graph;
  for (const auto& [name, tensor] : graph.initializers) {
    if (!IsFloating(tensor.dtype())) continue;
    facts.parameters += tensor.elements();
    facts.parameter_bytes += static_cast<int64_t>(tensor.bytes());
  }
  facts.adapters = GatherAdapterFacts(facts.spec, graph);
  if (graph.outputs.empty()) return facts;
  auto canonical = Canonicalize(graph);
  if (!canonical.ok()) {
    facts.blocked = std::string(canonical.status().message());
    return facts;
  }
  if (absl::Status s = InferTypes(&*canonical, environment.operators()); !s.ok())
    facts.blocked = std::string(s.message());
  for (const Node& node : canonical->nodes) {
    for (const std::string& out : node.outputs) {
      const ValueType* type = canonical->TypeOf(out);
      if (type == nullptr) continue;
      const std::optional<Shape> shape = type->StaticShape();
      // A declared shape need not be one that any tensor can have.
      if (!shape.has_value() || !CheckedElements(shape->dims()).ok()) continue;
      const int64_t bytes = static_cast<int64_t>(TensorBytes(type->dtype, *shape));
      facts.activation_bytes += std::min(bytes, kMostBytes - facts.activation_bytes);
    }
  }
  facts.run = GatherKernelFacts(*canonical, environment);
  // Types tell more of quantized weights.
  facts.adapters = GatherAdapterFacts(facts.spec, *canonical);
  if (facts.blocked.empty() && (!facts.trainable.empty() || NamesTraining(args))) {
    auto report = Report(args, model, facts, *canonical, environment);
    if (report.ok()) facts.gradients = *std::move(report);
    facts.blocked =
        report.ok() ? ObstacleText(facts.gradients) : std::string(report.status().message());
  }
  return facts;
}

std::string Opsets(const Model& model) {
  return absl::StrJoin(model.opsets(), ", ", [](std::string* out, const auto& o) {
    absl::StrAppend(out, o.first.empty() ? "ai.onnx" : o.first, " ", o.second);
  });
}

void PrintValues(const char* title, const std::vector<NamedType>& values) {
  std::cout << title << "\n";
  for (const NamedType& v : values)
    std::cout << "  " << v.name << ": " << v.type.ToString() << "\n";
}

void PrintDecision(const Facts& f, const WeightDecision& d) {
  const ValueType* type = f.graph.TypeOf(d.name);
  std::cout << "  " << d.name << ": " << (type == nullptr ? "float" : type->ToString()) << ", "
            << d.reason << "\n";
}

void PrintTrained(const Facts& f) {
  for (const WeightDecision& d : f.decisions) {
    if (d.trains) PrintDecision(f, d);
  }
}

// What is left for one reason, in one line.
void PrintLeft(const Facts& f) {
  std::vector<std::pair<std::string, std::vector<const WeightDecision*>>> by_reason;
  for (const WeightDecision& d : f.decisions) {
    if (d.trains) continue;
    const auto it = std::find_if(by_reason.begin(), by_reason.end(),
                                 [&](const auto& group) { return group.first == d.reason; });
    auto& group = it == by_reason.end()
                      ? by_reason.emplace_back(d.reason, std::vector<const WeightDecision*>{})
                      : *it;
    group.second.push_back(&d);
  }
  for (const auto& [reason, left] : by_reason) {
    if (left.size() == 1) {
      PrintDecision(f, *left[0]);
      continue;
    }
    std::vector<std::string> names;
    for (const WeightDecision* d : left) names.push_back(d->name);
    std::cout << absl::StrFormat("  %d x %s: %s\n", left.size(), reason, Listed(names, kShown));
  }
}

void PrintText(const Model& model, const Facts& f) {
  std::cout << model.path() << ": IR " << model.ir_version() << ", opsets " << Opsets(model)
            << "\n";
  PrintValues("inputs", f.spec.inference.FeedInputs());
  PrintValues("outputs", f.spec.inference.outputs);
  std::cout << "parameters: " << f.parameters << " (" << SizeText(f.parameter_bytes)
            << ")\noperators\n";
  for (const auto& [op, n] : f.operators) std::cout << absl::StrFormat("  %5d x %s\n", n, op);
  if (!f.classes.empty()) std::cout << "classes: " << absl::StrJoin(f.classes, ", ") << "\n";
  PrintTraining(model, f.spec);
  PrintAdapterFacts(f.adapters);
  std::cout << "would train: " << f.trainable.size() << " initializers\n";
  PrintTrained(f);
  if (f.decisions.size() > f.trainable.size()) {
    std::cout << "would leave: " << f.decisions.size() - f.trainable.size()
              << " (--train '*' --train NAME takes one of these, too)\n";
    PrintLeft(f);
  }
  PrintKernelFacts(f.run);
  if (!f.gradients.xs.empty()) {
    PrintReport(f.gradients);
  } else {
    std::cout << "gradients: " << (f.blocked.empty() ? "nothing to train" : "blocked\n" + f.blocked)
              << "\n";
  }
  PrintPlacements(f.placements);
  if (f.activation_bytes > 0) {
    std::cout << "memory estimate: " << SizeText(f.parameter_bytes + f.activation_bytes)
              << " to run, about " << SizeText(4 * f.parameter_bytes + 2 * f.activation_bytes)
              << " to train with Adam\n";
  }
}

void PrintJson(const Model& model, const Facts& f) {
  JsonWriter w;
  w.BeginObject()
      .Field("model", model.path())
      .Field("ir_version", model.ir_version())
      .Key("opsets")
      .BeginObject();
  for (const auto& [domain, version] : model.opsets())
    w.Field(domain.empty() ? "ai.onnx" : domain, version);
  w.EndObject();
  WriteValues("inputs", f.spec.inference.FeedInputs(), &w);
  WriteValues("outputs", f.spec.inference.outputs, &w);
  w.Field("parameters", f.parameters).Key("operators").BeginObject();
  for (const auto& [op, n] : f.operators) w.Field(op, n);
  w.EndObject();
  WriteTraining(model, f.spec, &w);
  w.Key("classes").Values(f.classes);
  WriteAdapterFacts(f.adapters, &w);
  w.Key("trainable").Values(f.trainable).Key("weights").BeginArray();
  for (const WeightDecision& d : f.decisions) {
    w.BeginObject().Field("name", d.name).Field("trains", d.trains).Field("reason", d.reason);
    w.EndObject();
  }
  w.EndArray().Field("gradient_blocked", f.blocked);
  WriteReport(f.gradients, &w);
  WriteKernelFacts(f.run, &w);
  if (!f.placements.empty()) WritePlacements(f.placements, &w);
  w.Field("memory_bytes", f.parameter_bytes + f.activation_bytes).EndObject();
  std::cout << w.text() << "\n";
}

absl::StatusOr<int> RunInspect(const Args& args, const Environment& environment) {
  ONWARD_ASSIGN_OR_RETURN(Model model, ReadModel(args.Argument("MODEL")));
  ONWARD_ASSIGN_OR_RETURN(Facts facts, Gather(args, model, environment));
  if (args.Has("device")) facts.placements = PlacementsOf(model, args.Int("batch"), environment);
  args.Has("json") ? PrintJson(model, facts) : PrintText(model, facts);
  return 0;
}

}  // namespace

Command InspectCommand() {
  std::vector<Flag> flags = ChoiceFlags();
  flags.push_back(Flag::Switch("json", "print one JSON object"));
  flags.push_back(
      Flag::Count("batch", "N", "for --device: where the model leaves it open", 1).Default("1"));
  return Planning({.name = "inspect",
                   .summary = "what is in a file, what would train, and what blocks a gradient",
                   .arguments = {{"MODEL", "an .onnx file"}},
                   .flags = std::move(flags),
                   .example = "onward inspect model.onnx --loss cross_entropy",
                   .check =
                       [](const Args& args) {
                         AuthorOptions ignored;
                         return ReadChoiceFlags(args, &ignored);
                       }},
                  RunInspect);
}

}  // namespace onward
