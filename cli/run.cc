// SPDX-License-Identifier: Apache-2.0
// onward run, onward step: executing a model on given tensors.
#include <iostream>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/commands.h"
#include "cli/compute_flags.h"
#include "cli/tensor_args.h"
#include "cli/write_checked.h"
#include "core/base/status.h"
#include "trainer/report/log/jsonl.h"
#include "training_info/lower.h"
#include "training_info/step.h"

namespace onward {
namespace {

void WriteJson(const Value& value, JsonWriter* w) {
  if (const Tensor* tensor = value.tensor()) {
    w->Field("dtype", DTypeName(tensor->dtype())).Key("shape");
    w->Values(std::vector<int64_t>(tensor->shape().begin(), tensor->shape().end()));
    if (auto values = ToDoubles(*tensor); values.ok() && values->size() <= 1000)
      w->Key("values").Values(*values);
    return;
  }
  w->Field("type", value.empty() ? "nothing" : value.type().ToString());
  const Sequence* items = value.map() != nullptr ? &value.map()->values : value.sequence();
  if (value.map() != nullptr) {
    w->Key("keys").BeginObject();
    WriteJson(value.map()->keys, w);
    w->EndObject();
  }
  if (items == nullptr) return;
  w->Key("items").BeginArray();
  for (const Value& item : items->items) {
    w->BeginObject();
    WriteJson(item, w);
    w->EndObject();
  }
  w->EndArray();
}

void PrintOutputs(const ValueMap& outputs, bool json) {
  for (const auto& [name, value] : outputs) {
    if (!json) {
      std::cout << name << ": " << Summary(value) << "\n";
      continue;
    }
    JsonWriter w;
    w.BeginObject().Field("output", name);
    WriteJson(value, &w);
    std::cout << w.EndObject().text() << "\n";
  }
}

// What output files must not replace.
std::vector<std::string> NamedFiles(const Args& args) {
  std::vector<std::string> files = args.All("input");
  files.push_back(args.Argument("MODEL"));
  return files;
}

bool IsRead(const Graph& graph, const std::string& input) {
  return graph.IsOutput(input) || absl::c_any_of(graph.nodes, [&](const Node& node) {
           return absl::c_linear_search(AllInputs(node), input);
         });
}

// The outputs of --only.
std::vector<std::string> Wanted(const Args& args) {
  return absl::StrSplit(args.String("only"), ',', absl::SkipEmpty());
}

Flag OnlyFlag() {
  return Flag::Value("only", "A,B", "compute these outputs and nothing that they do not need");
}

absl::StatusOr<int> RunRun(const Args& args, const Environment& environment) {
  WatchInterrupts();
  ONWARD_ASSIGN_OR_RETURN(Model model, ReadModel(args.Argument("MODEL")));
  WarnOfTraining(model);
  ONWARD_ASSIGN_OR_RETURN(Graph graph,
                          RunnableGraph(model, environment, {Wanted(args), args.Has("no-zipmap")}));
  ONWARD_ASSIGN_OR_RETURN(ValueMap feeds,
                          ParseValueArguments(args.All("input"), graph.FeedInputs(), graph.inputs));
  // An initializer that is an input too may be overridden.
  for (const auto& [name, value] : feeds) graph.initializers.erase(name);
  std::vector<std::string> missing;
  for (const NamedType& in : graph.FeedInputs()) {
    // An optional that is not given is empty.
    if (in.type.kind == ValueType::Kind::kOptional) feeds.try_emplace(in.name);
    auto it = feeds.find(in.name);
    if (it == feeds.end() && !IsRead(graph, in.name)) continue;
    if (it == feeds.end()) {
      missing.push_back(absl::StrCat("input '", in.name, "' (", in.type.ToString(),
                                     ") is missing: add --input ", in.name, "=FILE",
                                     in.type.is_tensor() ? ".npy" : ".pb"));
    }
  }
  if (!missing.empty()) return absl::InvalidArgumentError(absl::StrJoin(missing, "; "));
  for (const NamedType& in : graph.FeedInputs()) {
    const auto it = feeds.find(in.name);
    if (it != feeds.end()) ONWARD_RETURN_IF_ERROR(CheckFeed(in, it->second));
  }
  CompileOptions options = environment.compile_options();
  options.looked_at = std::as_const(model).weights().PageReleaser();
  Session session(std::move(graph), options);
  RunOptions run;
  run.cancel = &Interrupted();
  auto outputs = session.RunValues(feeds, nullptr, run);
  if (!outputs.ok()) return Annotate(outputs.status(), absl::StrCat("'", model.path(), "'"));
  if (args.Has("output-dir"))
    ONWARD_RETURN_IF_ERROR(WriteOutputs(*outputs, args.String("output-dir"), NamedFiles(args)));
  if (!args.Has("output-dir") || args.Has("json")) PrintOutputs(*outputs, args.Has("json"));
  return 0;
}

absl::StatusOr<int> RunStep(const Args& args, const Environment& environment) {
  WatchInterrupts();
  ONWARD_ASSIGN_OR_RETURN(Model model, ReadModel(args.Argument("MODEL")));
  ONWARD_ASSIGN_OR_RETURN(std::unique_ptr<TrainingModel> training,
                          TrainingModel::Create(std::move(model), environment));
  const int entry = args.Has("entry") ? args.SmallInt("entry") : -1;
  if (entry >= training->entries()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--entry ", entry, ": the model has ", training->entries(), " training entries (from 0)"));
  }
  if (args.Has("initialize")) ONWARD_RETURN_IF_ERROR(training->Initialize());
  const std::vector<std::string> wanted = Wanted(args);
  for (const std::string& name : wanted) ONWARD_RETURN_IF_ERROR(training->CheckOutput(name));
  // Inputs that this step does not need may be given, as to a graph.
  std::vector<NamedType> all;
  for (int k = 0; k < training->entries(); ++k) {
    const std::vector<NamedType>& inputs = training->lowered(k).inputs;
    all.insert(all.end(), inputs.begin(), inputs.end());
  }
  ONWARD_ASSIGN_OR_RETURN(
      ValueMap feeds,
      ParseValueArguments(args.All("input"), training->StepInputs(entry, wanted), all));
  ValueMap outputs;
  for (int64_t i = 0; i < args.Int("n"); ++i) {
    auto result = entry >= 0 ? training->StepEntryValues(entry, feeds, wanted, &Interrupted())
                             : training->StepValues(feeds, wanted, &Interrupted());
    if (!result.ok())
      return Annotate(result.status(),
                      absl::StrCat("'", training->model().path(), "', step ", i + 1));
    outputs = *std::move(result);
  }
  if (args.Has("output-dir")) {
    std::vector<std::string> files = NamedFiles(args);
    if (args.Has("output")) files.push_back(args.String("output"));
    ONWARD_RETURN_IF_ERROR(WriteOutputs(outputs, args.String("output-dir"), files));
  }
  if (!args.Has("output-dir") || args.Has("json")) PrintOutputs(outputs, args.Has("json"));
  if (args.Has("output")) {
    ONWARD_ASSIGN_OR_RETURN(Model out, training->Export());
    ONWARD_RETURN_IF_ERROR(WriteModel(out, args.String("output"), ReadWriteFlags(args)));
  }
  return 0;
}

}  // namespace

Command RunCommand() {
  return Computing(
      {.name = "run",
       .summary = "runs the inference graph on given values",
       .arguments = {{"MODEL", "an .onnx file"}},
       .flags = {Flag::Value("input", "NAME=FILE",
                             "an input: .npy, .pb (TensorProto, SequenceProto, ...) or a literal")
                     .Short('i')
                     .Names(FlagNames::kTensor)
                     .Repeated(),
                 Flag::Value("output-dir", "DIR",
                             "write each output as DIR/<output>.npy (.pb if no tensor)"),
                 OnlyFlag(),
                 Flag::Switch("no-zipmap",
                              "give the scores that ZipMap takes as a tensor, not as maps"),
                 Flag::Switch("json", "print one JSON object per output")},
       .example = "onward run model.onnx --input x=x.npy --output-dir out"},
      RunRun);
}

Command StepCommand() {
  return Computing(
      {.name = "step",
       .summary = "runs training steps exactly as the file's training_info says",
       .arguments = {{"MODEL", "an .onnx file with training_info"}},
       .flags = {Flag::Value("input", "NAME=FILE", "an input of the training graph")
                     .Short('i')
                     .Names(FlagNames::kTensor)
                     .Repeated(),
                 Flag::Count("n", "N", "how many steps", 0).Short('n').Default("1"),
                 EntryFlag("run this entry only (from 0); all in order otherwise"),
                 Flag::Switch("initialize", "run the initialization graphs first"),
                 Flag::Value("output", "OUT", "write the model with its updated initializers")
                     .Short('o')
                     .Names(FlagNames::kResult),
                 OverwriteFlag(), ExternalDataFlag(),
                 Flag::Value("output-dir", "DIR",
                             "write the last step's outputs as DIR/<output>.npy"),
                 OnlyFlag(), Flag::Switch("json", "print one JSON object per output")},
       .example =
           "onward step trainable.onnx --input x=x.npy --input label=y.npy -n 10 -o out.onnx"},
      RunStep);
}

}  // namespace onward
