// SPDX-License-Identifier: Apache-2.0
// onward score: folders in the layout of the ONNX backend tests.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/commands.h"
#include "cli/compare_tensors.h"
#include "cli/compute_flags.h"
#include "core/base/status.h"
#include "core/onnx_io/model.h"
#include "core/onnx_io/value_file.h"
#include "core/runtime/session.h"
#include "trainer/report/log/jsonl.h"
#include "training_info/lower.h"

namespace onward {
namespace {

namespace fs = std::filesystem;

// The tolerances of onnx's own backend tests.
constexpr double kOfficialRtol = 1e-3, kOfficialAtol = 1e-7;

constexpr char kPass[] = "pass", kFail[] = "fail", kUnsupported[] = "unsupported";

struct CaseResult {
  std::string name, result, detail, op;
};

// The number behind "key": in a case's data.json, if there is one.
double JsonNumberIn(const fs::path& file, const std::string& key, double otherwise) {
  std::ifstream in(file);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const size_t at = text.find("\"" + key + "\"");
  if (at == std::string::npos) return otherwise;
  size_t begin = text.find_first_of("0123456789.-+", at + key.size() + 2);
  if (begin == std::string::npos) return otherwise;
  const size_t end = text.find_first_not_of("0123456789.-+eE", begin);
  double value = otherwise;
  return absl::SimpleAtod(text.substr(begin, end - begin), &value) ? value : otherwise;
}

absl::StatusOr<std::vector<Value>> ReadNumbered(const fs::path& folder, const std::string& stem,
                                                const std::vector<NamedType>& declared) {
  std::vector<Value> values;
  for (size_t i = 0; fs::exists(folder / absl::StrCat(stem, "_", i, ".pb")); ++i) {
    const std::string path = (folder / absl::StrCat(stem, "_", i, ".pb")).string();
    ONWARD_ASSIGN_OR_RETURN(
        Value value, ReadValueFile(path, i < declared.size() ? declared[i].type : ValueType()));
    values.push_back(std::move(value));
  }
  return values;
}

size_t CountNumbered(const fs::path& folder, const std::string& stem) {
  size_t count = 0;
  while (fs::exists(folder / absl::StrCat(stem, "_", count, ".pb"))) ++count;
  return count;
}

absl::Status RunDataSet(const Graph& graph, const fs::path& folder, const Tolerance& tolerance,
                        const Environment& environment) {
  Graph copy = graph;
  // Inputs in order: those without initializer, or all of them where there are as many files.
  std::vector<NamedType> names = copy.FeedInputs();
  if (CountNumbered(folder, "input") > names.size()) names = copy.inputs;
  ONWARD_ASSIGN_OR_RETURN(std::vector<Value> inputs, ReadNumbered(folder, "input", names));
  ONWARD_ASSIGN_OR_RETURN(std::vector<Value> expected,
                          ReadNumbered(folder, "output", copy.outputs));
  ValueMap feeds;
  for (size_t i = 0; i < inputs.size() && i < names.size(); ++i) {
    feeds[names[i].name] = inputs[i];
    copy.initializers.erase(names[i].name);
  }
  CompileOptions options = environment.compile_options();
  const std::vector<NamedType> outputs = copy.outputs;
  Session session(std::move(copy), options);
  RunOptions run;
  run.cancel = &Interrupted();
  ONWARD_ASSIGN_OR_RETURN(ValueMap results, session.RunValues(feeds, nullptr, run));
  // Data sets leave out what is no tensor, such as the dictionaries of a ZipMap.
  const bool rest_is_no_tensor =
      !expected.empty() && expected.size() < outputs.size() &&
      std::none_of(outputs.begin() + static_cast<int64_t>(expected.size()), outputs.end(),
                   [](const NamedType& out) { return out.type.is_tensor(); });
  if (outputs.size() != expected.size() && !rest_is_no_tensor) {
    return absl::OutOfRangeError(
        absl::StrCat("the model has ", outputs.size(), " outputs, the case ", expected.size()));
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const Difference d = CompareValues(results.at(outputs[i].name), expected[i], tolerance);
    if (!d.equal)
      return absl::OutOfRangeError(absl::StrCat("output '", outputs[i].name, "': ", d.ToString()));
  }
  return absl::OkStatus();
}

CaseResult RunCase(const fs::path& folder, Tolerance tolerance, bool overridden,
                   const Environment& environment) {
  CaseResult result{folder.filename().string(), kPass, "", ""};
  auto conclude = [&](const absl::Status& status) {
    const bool differs = status.code() == absl::StatusCode::kOutOfRange;
    const bool unsupported = status.code() == absl::StatusCode::kUnimplemented;
    result.result = unsupported ? kUnsupported : kFail;
    result.detail = std::string(differs ? "" : "error: ") + std::string(status.message());
    return result;
  };
  if (!overridden) {
    tolerance.rtol = JsonNumberIn(folder / "data.json", "rtol", tolerance.rtol);
    tolerance.atol = JsonNumberIn(folder / "data.json", "atol", tolerance.atol);
  }
  auto model = ReadModel((folder / "model.onnx").string());
  if (!model.ok()) return conclude(model.status());
  auto graph = RunnableGraph(*model, environment);
  if (auto raw = InferenceGraph(*model); raw.ok())
    result.op = raw->nodes.empty()       ? ""
                : raw->nodes.size() == 1 ? raw->nodes[0].op_type
                                         : "(several)";
  if (!graph.ok()) return conclude(graph.status());
  int sets = 0;
  for (int k = 0; fs::is_directory(folder / absl::StrCat("test_data_set_", k)); ++k, ++sets) {
    if (absl::Status s =
            RunDataSet(*graph, folder / absl::StrCat("test_data_set_", k), tolerance, environment);
        !s.ok())
      return conclude(s);
  }
  if (sets == 0) return conclude(absl::InvalidArgumentError("the case has no test_data_set_0"));
  return result;
}

absl::StatusOr<std::vector<fs::path>> FindCases(const std::vector<std::string>& folders) {
  std::vector<fs::path> cases;
  for (const std::string& folder : folders) {
    std::error_code error;
    if (!fs::is_directory(folder, error))
      return absl::NotFoundError(absl::StrCat("'", folder, "' is not a folder"));
    if (fs::exists(fs::path(folder) / "model.onnx")) {
      cases.push_back(fs::path(folder).has_filename() ? fs::path(folder)
                                                      : fs::path(folder).parent_path());
      continue;
    }
    const size_t before = cases.size();
    for (const auto& e : fs::directory_iterator(folder, error)) {
      if (fs::exists(e.path() / "model.onnx", error)) cases.push_back(e.path());
    }
    if (cases.size() == before)
      return absl::NotFoundError(
          absl::StrCat("'", folder, "' holds no case folders (FOLDER/model.onnx)"));
    std::sort(cases.begin() + static_cast<int64_t>(before), cases.end());
  }
  return cases;
}

absl::StatusOr<int> RunScore(const Args& args, const Environment& environment) {
  WatchInterrupts();
  ONWARD_ASSIGN_OR_RETURN(std::vector<fs::path> cases, FindCases(args.Arguments("DIR")));
  Tolerance tolerance{kOfficialRtol, kOfficialAtol};
  const bool overridden = args.Has("rtol") || args.Has("atol");
  if (args.Has("rtol")) tolerance.rtol = args.Double("rtol");
  if (args.Has("atol")) tolerance.atol = args.Double("atol");
  const bool json = args.Has("json");
  std::map<std::string, std::map<std::string, int>> by_op;
  std::map<std::string, int> total;
  for (const fs::path& folder : cases) {
    const CaseResult r = RunCase(folder, tolerance, overridden, environment);
    if (Interrupted()) return absl::CancelledError("stopped");
    ++total[r.result];
    ++by_op[r.op][r.result];
    if (json) {
      JsonWriter w;
      w.BeginObject()
          .Field("case", r.name)
          .Field("result", r.result)
          .Field("detail", r.detail)
          .EndObject();
      std::cout << w.text() << std::endl;
    } else if (r.result != kPass) {
      std::cout << r.result << "  " << r.name << "  " << r.detail << std::endl;
    }
  }
  if (!json) {
    std::cout << absl::StrFormat("%-32s %8s %8s %12s\n", "operator", "passed", "failed",
                                 "unsupported");
    for (auto& [op, counts] : by_op) {
      std::cout << absl::StrFormat("%-32s %8d %8d %12d\n", op, counts[kPass], counts[kFail],
                                   counts[kUnsupported]);
    }
  }
  // Standard output holds nothing but JSON where that is asked for.
  std::ostream& summary = json ? std::cerr : std::cout;
  summary << total[kPass] << " passed, " << total[kFail] << " failed";
  if (total[kUnsupported] > 0) summary << ", " << total[kUnsupported] << " unsupported";
  summary << std::endl;
  return total[kPass] == static_cast<int>(cases.size()) ? 0 : 1;
}

}  // namespace

Command ScoreCommand() {
  return Computing(
      {.name = "score",
       .summary = "runs cases in the ONNX backend-test layout",
       .arguments = {{"DIR", "folders of case folders (model.onnx, test_data_set_k)", false, true}},
       .flags = {Flag::Number("rtol", "R", "relative tolerance instead of the official one", 0,
                              1e9),
                 Flag::Number("atol", "A", "absolute tolerance instead of the official one", 0,
                              1e9),
                 Flag::Switch("json", "print one JSON object per case")},
       .example = "onward score onnx/backend/test/data/node"},
      RunScore);
}

}  // namespace onward
