// SPDX-License-Identifier: Apache-2.0
// onward compare: the same inputs through two models, or one model against a
// folder of expected outputs.
#include <filesystem>
#include <iostream>
#include <set>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/compare_tensors.h"
#include "cli/compute_flags.h"
#include "cli/paths.h"
#include "cli/random_feeds.h"
#include "cli/tensor_args.h"
#include "core/base/status.h"
#include "core/runtime/session.h"
#include "trainer/report/log/jsonl.h"
#include "training_info/lower.h"

namespace onward {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<ValueMap> RunValues(Graph graph, const ValueMap& feeds,
                                   const std::vector<std::string>& values,
                                   const Environment& environment) {
  ValueMap relevant;
  for (const NamedType& in : graph.FeedInputs()) {
    auto it = feeds.find(in.name);
    if (it != feeds.end()) relevant.insert(*it);
  }
  CompileOptions options = environment.compile_options();
  options.outputs = values;
  Session session(std::move(graph), options);
  RunOptions run;
  run.cancel = &Interrupted();
  return session.RunValues(relevant, nullptr, run);
}

// Values of both graphs, in the order in which the first computes them.
std::vector<std::string> CommonValues(const Graph& a, const Graph& b) {
  std::set<std::string> second;
  for (const Node& node : b.nodes) second.insert(node.outputs.begin(), node.outputs.end());
  std::vector<std::string> common;
  for (const Node& node : a.nodes) {
    for (const std::string& out : node.outputs) {
      if (!out.empty() && second.contains(out)) common.push_back(out);
    }
  }
  return common;
}

absl::StatusOr<ValueMap> MissingFeeds(const Graph& graph, ValueMap feeds) {
  std::vector<NamedType> missing;
  for (const NamedType& in : graph.FeedInputs()) {
    if (in.type.kind == ValueType::Kind::kOptional) feeds.try_emplace(in.name);
    if (!feeds.contains(in.name)) missing.push_back(in);
  }
  ONWARD_ASSIGN_OR_RETURN(TensorMap drawn, RandomFeeds(missing, graph, {.batch = 1, .other = 1}));
  for (auto& [name, tensor] : drawn) feeds.emplace(name, std::move(tensor));
  return feeds;
}

absl::StatusOr<ValueMap> ExpectedIn(const fs::path& folder, const std::vector<NamedType>& outputs) {
  ValueMap expected;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const fs::path npy = folder / (FileNameFor(outputs[i].name) + ".npy");
    const fs::path pb = folder / absl::StrCat("output_", i, ".pb");
    if (!fs::exists(npy) && !fs::exists(pb)) {
      return absl::NotFoundError(
          absl::StrCat("neither ", npy.string(), " nor ", pb.string(), " exists"));
    }
    ONWARD_ASSIGN_OR_RETURN(expected[outputs[i].name],
                            ReadValue((fs::exists(npy) ? npy : pb).string(), outputs[i].type));
  }
  return expected;
}

absl::StatusOr<int> RunCompare(const Args& args, const Environment& environment) {
  WatchInterrupts();
  ONWARD_ASSIGN_OR_RETURN(Model model_a, ReadModel(args.Argument("A")));
  ONWARD_ASSIGN_OR_RETURN(Graph a, RunnableGraph(model_a, environment));
  ONWARD_ASSIGN_OR_RETURN(ValueMap feeds, ParseValueArguments(args.All("input"), a.FeedInputs()));
  const fs::path other(args.Argument("B"));
  std::vector<std::string> values;
  for (const NamedType& out : a.outputs) values.push_back(out.name);
  ValueMap expected;
  if (fs::is_directory(other)) {
    const std::vector<NamedType> inputs = a.FeedInputs();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const fs::path pb = other / absl::StrCat("input_", i, ".pb");
      if (feeds.contains(inputs[i].name) || !fs::exists(pb)) continue;
      ONWARD_ASSIGN_OR_RETURN(feeds[inputs[i].name], ReadValue(pb.string(), inputs[i].type));
    }
    ONWARD_ASSIGN_OR_RETURN(expected, ExpectedIn(other, a.outputs));
  } else {
    ONWARD_ASSIGN_OR_RETURN(Model model_b, ReadModel(other.string()));
    auto graph_b = RunnableGraph(model_b, environment);
    if (!graph_b.ok()) return Naming(other.string(), graph_b.status());
    Graph b = *std::move(graph_b);
    if (args.String("values") == "all") {
      std::vector<std::string> common = CommonValues(a, b);
      for (const std::string& v : values) {
        if (std::find(common.begin(), common.end(), v) == common.end()) common.push_back(v);
      }
      values = common;
    }
    ONWARD_ASSIGN_OR_RETURN(feeds, MissingFeeds(a, std::move(feeds)));
    auto values_b = RunValues(std::move(b), feeds, values, environment);
    if (!values_b.ok()) return Naming(other.string(), values_b.status());
    expected = *std::move(values_b);
  }
  ONWARD_ASSIGN_OR_RETURN(feeds, MissingFeeds(a, std::move(feeds)));
  ONWARD_ASSIGN_OR_RETURN(ValueMap got, RunValues(std::move(a), feeds, values, environment));
  const Tolerance tolerance{args.Double("rtol"), args.Double("atol")};
  std::string first;
  for (const std::string& name : values) {
    const Difference d = CompareValues(got.at(name), expected.at(name), tolerance);
    if (!d.equal && first.empty()) first = name;
    if (args.Has("json")) {
      JsonWriter w;
      w.BeginObject().Field("value", name).Field("equal", d.equal).Field("max_abs", d.max_absolute);
      w.Field("max_rel", d.max_relative).Field("detail", d.mismatch).EndObject();
      std::cout << w.text() << "\n";
    } else {
      std::cout << (d.equal ? "same    " : "DIFFERS ") << name << ": " << d.ToString() << "\n";
    }
  }
  if (!first.empty() && !args.Has("json"))
    std::cout << "first value that departs: " << first << "\n";
  return first.empty() ? 0 : 1;
}

}  // namespace

Command CompareCommand() {
  return Computing(
      {.name = "compare",
       .summary = "runs two models on the same inputs; exit 1 where they differ",
       .arguments = {{"A", "an .onnx file"}, {"B", "another one, or a folder of expected outputs"}},
       .flags = {Flag::Value("input", "NAME=FILE", "an input; random values otherwise")
                     .Short('i')
                     .Names(FlagNames::kTensor)
                     .Repeated(),
                 Flag::Choice("values", {"outputs", "all"},
                              "outputs, or every value both models have")
                     .Default("outputs"),
                 Flag::Number("rtol", "R", "relative tolerance", 0, 1e9).Default("1e-3"),
                 Flag::Number("atol", "A", "absolute tolerance", 0, 1e9).Default("1e-3"),
                 Flag::Switch("json", "print one JSON object per value")},
       .example = "onward compare before.onnx after.onnx --input x=x.npy --values all"},
      RunCompare);
}

}  // namespace onward
