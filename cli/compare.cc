// SPDX-License-Identifier: Apache-2.0
// onward compare: the same inputs through two models, or one model against a
// folder of expected outputs.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

std::string Named(const std::vector<NamedType>& values) {
  return absl::StrJoin(values, ", ", [](std::string* out, const NamedType& v) {
    absl::StrAppend(out, v.name, " (", v.type.ToString(), ")");
  });
}

// The type that one tensor may have for both; an error where there is none.
absl::StatusOr<ValueType> TypeForBoth(const ValueType& a, const ValueType& b) {
  if (!a.is_tensor() || !b.is_tensor()) return a;
  bool differ = a.dtype != b.dtype;
  ValueType type = a;
  if (a.has_rank && b.has_rank) {
    differ |= a.rank() != b.rank();
    for (int i = 0; !differ && i < a.rank(); ++i) {
      if (!b.dims[i].known()) continue;
      differ = a.dims[i].known() && a.dims[i].value != b.dims[i].value;
      type.dims[i] = b.dims[i];
    }
  }
  if (differ) return absl::InvalidArgumentError("the types differ");
  return type;
}

struct Side {
  std::string path;
  const Graph& graph;
};

// The inputs of A, in sizes that B takes, too: both are given the same tensors, by name.
absl::StatusOr<std::vector<NamedType>> CommonInputs(const Side& a, const Side& b) {
  std::vector<NamedType> inputs = a.graph.FeedInputs();
  const std::vector<NamedType> others = b.graph.FeedInputs();
  std::vector<std::string> differ;
  for (const NamedType& other : others) {
    const auto it = std::find_if(inputs.begin(), inputs.end(),
                                 [&](const NamedType& in) { return in.name == other.name; });
    const auto type =
        it == inputs.end() ? absl::NotFoundError("") : TypeForBoth(it->type, other.type);
    if (type.ok()) {
      it->type = *type;
    } else {
      differ.push_back(other.name);
    }
  }
  if (differ.empty()) return inputs;
  return absl::InvalidArgumentError(
      absl::StrCat("the models take different inputs: '", a.path, "' takes ",
                   Named(a.graph.FeedInputs()), "; '", b.path, "' takes ", Named(others),
                   ". Both are given the same tensors by name. To compare "
                   "answers to different ones, keep those of one model: onward run ",
                   b.path, " --input ", differ[0], "=FILE --output-dir DIR, then onward compare ",
                   a.path, " DIR --input ..."));
}

absl::Status CheckOutputs(const Side& a, const Side& b) {
  std::set<std::string> values;
  for (const NamedType& in : b.graph.inputs) values.insert(in.name);
  for (const auto& [name, tensor] : b.graph.initializers) values.insert(name);
  for (const Node& node : b.graph.nodes) values.insert(node.outputs.begin(), node.outputs.end());
  for (const NamedType& out : a.graph.outputs) {
    if (values.contains(out.name)) continue;
    return absl::InvalidArgumentError(absl::StrCat("'", b.path, "' has no value '", out.name,
                                                   "', an output of '", a.path,
                                                   "'; its outputs are ", Named(b.graph.outputs)));
  }
  return absl::OkStatus();
}

absl::StatusOr<ValueMap> MissingFeeds(const std::vector<NamedType>& inputs, const Graph& graph,
                                      ValueMap feeds) {
  std::vector<NamedType> missing;
  for (const NamedType& in : inputs) {
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
    const Side side_a{args.Argument("A"), a}, side_b{other.string(), b};
    ONWARD_ASSIGN_OR_RETURN(const std::vector<NamedType> inputs, CommonInputs(side_a, side_b));
    ONWARD_RETURN_IF_ERROR(CheckOutputs(side_a, side_b));
    ONWARD_ASSIGN_OR_RETURN(feeds, MissingFeeds(inputs, a, std::move(feeds)));
    auto values_b = RunValues(std::move(b), feeds, values, environment);
    if (!values_b.ok()) return Naming(other.string(), values_b.status());
    expected = *std::move(values_b);
  }
  ONWARD_ASSIGN_OR_RETURN(feeds, MissingFeeds(a.FeedInputs(), a, std::move(feeds)));
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
