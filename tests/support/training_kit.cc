// SPDX-License-Identifier: Apache-2.0
#include "tests/support/training_kit.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>
#include <stdexcept>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "core/base/status.h"
#include "core/onnx_io/proto.h"
#include "core/onnx_io/value_file.h"
#include "environment/environment.h"
#include "tests/support/paths.h"
#include "tests/support/plain_step.h"
#include "tests/support/scratch.h"
#include "tests/support/test_environment.h"
#include "training_info/combine.h"
#include "training_info/import.h"
#include "training_info/lower.h"
#include "training_info/portable_step.h"
#include "training_info/step.h"
#include "training_info/validate.h"

namespace onward {
namespace {

namespace fs = std::filesystem;
using Json = google::protobuf::Value;

const Json& Field(const Json& object, const std::string& key) {
  static const Json* const nothing = new Json;
  const auto& fields = object.struct_value().fields();
  const auto it = fields.find(key);
  return it == fields.end() ? *nothing : it->second;
}

std::vector<std::string> Strings(const Json& list) {
  std::vector<std::string> strings;
  for (const Json& item : list.list_value().values()) strings.push_back(item.string_value());
  return strings;
}

KitCase ReadCase(const fs::path& folder) {
  Json json;
  const std::string text = FileBytes((folder / "case.json").string());
  if (!google::protobuf::util::JsonStringToMessage(text, json.mutable_struct_value()).ok())
    throw std::runtime_error(absl::StrCat((folder / "case.json").string(), " is no JSON"));
  KitCase result;
  result.name =
      absl::StrCat(folder.parent_path().filename().string(), "/", folder.filename().string());
  result.folder = folder.string();
  result.about = Field(json, "about").string_value();
  result.rules = Strings(Field(json, "rules"));
  const std::vector<std::string> findings = Strings(Field(json, "findings"));
  const std::set<std::string> sorted(findings.begin(), findings.end());
  result.findings.assign(sorted.begin(), sorted.end());
  result.actions = Strings(Field(json, "actions"));
  result.refused = Field(json, "expect").string_value() == "refuse";
  result.tolerance = {Field(json, "rtol").number_value(), Field(json, "atol").number_value()};
  for (const auto& [name, facts] : Field(json, "drawn").struct_value().fields()) {
    DrawnValues& drawn = result.drawn[name];
    drawn.low = Field(facts, "low").number_value();
    drawn.high = Field(facts, "high").number_value();
    drawn.mean = Field(facts, "mean").number_value();
    if (Field(facts, "deviation").has_number_value())
      drawn.deviation = Field(facts, "deviation").number_value();
    drawn.repeats = Field(facts, "repeats").bool_value();
  }
  return result;
}

absl::Status Departs(const std::string& what, const std::string& how) {
  return absl::OutOfRangeError(absl::StrCat(what, ": ", how));
}

// The lists of both graphs one after the other, each name once, as the standard joins them.
std::vector<NamedType> Joined(const TrainingSpec& spec, std::vector<NamedType> Graph::*list,
                              bool with_inference) {
  std::vector<NamedType> joined;
  std::set<std::string> known;
  const auto add = [&](const Graph& graph) {
    for (const NamedType& v : graph.*list) {
      if (known.insert(v.name).second) joined.push_back(v);
    }
  };
  if (with_inference) add(spec.inference);
  for (const TrainingEntry& entry : spec.entries) add(entry.algorithm);
  return joined;
}

bool CallsInference(const TrainingSpec& spec) {
  return std::any_of(spec.entries.begin(), spec.entries.end(),
                     [](const TrainingEntry& e) { return UsesGraphCall(e.algorithm); });
}

absl::StatusOr<ValueMap> ReadData(const fs::path& folder, const std::string& stem,
                                  const std::vector<NamedType>& declared) {
  ValueMap values;
  for (size_t i = 0; i < declared.size(); ++i) {
    const fs::path file = folder / absl::StrCat(stem, "_", i, ".pb");
    if (!fs::exists(file)) continue;
    ONWARD_ASSIGN_OR_RETURN(values[declared[i].name],
                            ReadValueFile(file.string(), declared[i].type));
  }
  return values;
}

// The variables after so many actions, those that are drawn apart.
absl::StatusOr<Variables> ReadState(const KitCase& kit_case, size_t number) {
  const std::string file = absl::StrCat(kit_case.folder, "/state_", number, ".pb");
  onnx::GraphProto state;
  if (!state.ParseFromString(FileBytes(file))) return absl::DataLossError(file);
  Variables variables;
  for (const onnx::TensorProto& proto : state.initializer()) {
    ONWARD_ASSIGN_OR_RETURN(variables[proto.name()], TensorFromProto(proto, nullptr));
  }
  return variables;
}

absl::Status CompareState(const KitCase& kit_case, size_t number, const Variables& variables) {
  ONWARD_ASSIGN_OR_RETURN(const Variables state, ReadState(kit_case, number));
  for (const auto& [name, expected] : state) {
    const auto it = variables.find(name);
    if (it == variables.end()) return Departs(name, "is not a variable");
    const Difference d = CompareTensors(it->second, expected, kit_case.tolerance);
    if (!d.equal) return Departs(absl::StrCat("variable '", name, "'"), d.ToString());
  }
  if (variables.size() != state.size() + kit_case.drawn.size())
    return Departs("variables", absl::StrCat("there are ", variables.size()));
  return absl::OkStatus();
}

// What a case feeds to steps, and what steps give, in the order of its files.
struct KitLists {
  std::vector<NamedType> inputs, outputs;

  explicit KitLists(const TrainingSpec& spec)
      : inputs(Joined(spec, &Graph::inputs, true)),
        outputs(Joined(spec, &Graph::outputs, !CallsInference(spec))) {}
};

fs::path DataOf(const KitCase& kit_case, size_t action) {
  return fs::path(kit_case.folder) / absl::StrCat("test_data_set_", action);
}

// Statistics of what was drawn: five standard errors around what they should be.
absl::Status CheckDrawn(const std::string& name, const DrawnValues& drawn, const Tensor& tensor) {
  const std::vector<double> values = *ToDoubles(tensor);
  const double n = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double v : values) {
    if (!(v >= drawn.low && v <= drawn.high)) return Departs(name, absl::StrCat("drew ", v));
    sum += v;
    squares += (v - drawn.mean) * (v - drawn.mean);
  }
  if (std::set<double>(values.begin(), values.end()).size() * 2 < values.size())
    return Departs(name, "drew the same numbers again and again");
  if (drawn.deviation < 0) return absl::OkStatus();
  if (std::abs(sum / n - drawn.mean) > 5 * drawn.deviation / std::sqrt(n))
    return Departs(name, absl::StrCat("has mean ", sum / n));
  if (std::abs(std::sqrt(squares / n) / drawn.deviation - 1) > 5 / std::sqrt(2 * n))
    return Departs(name, absl::StrCat("has deviation ", std::sqrt(squares / n)));
  return absl::OkStatus();
}

class KitRun {
 public:
  explicit KitRun(const KitCase& kit_case) : case_(kit_case) {}

  absl::Status Open() {
    ONWARD_ASSIGN_OR_RETURN(Model model, ReadModel(case_.folder + "/model.onnx"));
    ONWARD_ASSIGN_OR_RETURN(model_, TrainingModel::Create(std::move(model), TestEnvironment()));
    lists_.emplace(model_->spec());
    return CompareState(case_, 0, model_->variables());
  }

  absl::Status Act(size_t i) {
    const std::string& action = case_.actions[i];
    const fs::path data = DataOf(case_, i);
    ONWARD_ASSIGN_OR_RETURN(ValueMap feeds, ReadData(data, "input", lists_->inputs));
    ONWARD_ASSIGN_OR_RETURN(
        ValueMap expected,
        ReadData(data, "output",
                 action == "infer" ? model_->spec().inference.outputs : lists_->outputs));
    auto results = Do(absl::StripPrefix(action, "fail "), feeds);
    if (absl::StartsWith(action, "fail ")) {
      if (results.ok()) return Departs("the action", "did not fail");
    } else {
      ONWARD_RETURN_IF_ERROR(results.status());
      ONWARD_RETURN_IF_ERROR(Compare(*results, expected));
    }
    ONWARD_RETURN_IF_ERROR(CompareState(case_, i + 1, model_->variables()));
    return action == "initialize" ? CompareDrawn() : absl::OkStatus();
  }

 private:
  absl::StatusOr<ValueMap> Do(absl::string_view action, const ValueMap& feeds) {
    int entry = -1;
    if (action == "step") return model_->StepValues(feeds);
    if (absl::ConsumePrefix(&action, "step ") && absl::SimpleAtoi(action, &entry))
      return model_->StepEntryValues(entry, feeds);
    if (action == "infer") {
      ONWARD_ASSIGN_OR_RETURN(TensorMap tensors, ToTensors(feeds));
      ONWARD_ASSIGN_OR_RETURN(TensorMap results, model_->Infer(tensors));
      return ToValues(results);
    }
    if (action == "initialize") {
      ONWARD_RETURN_IF_ERROR(model_->Initialize());
      return ValueMap{};
    }
    if (action != "reload") return absl::InvalidArgumentError("no such action");
    // Beside the external data that the model may have, which is written along.
    const Scratch scratch;
    ONWARD_ASSIGN_OR_RETURN(Model written, model_->Export());
    ONWARD_RETURN_IF_ERROR(WriteModel(written, scratch.Path("model.onnx")));
    ONWARD_ASSIGN_OR_RETURN(Model read, ReadModel(scratch.Path("model.onnx")));
    ONWARD_ASSIGN_OR_RETURN(model_, TrainingModel::Create(std::move(read), TestEnvironment()));
    return ValueMap{};
  }

  // The case lists every output.
  absl::Status Compare(const ValueMap& results, const ValueMap& expected) {
    for (const auto& [name, value] : expected) {
      const auto it = results.find(name);
      if (it == results.end()) return Departs(name, "is not among the outputs");
      const Difference d = CompareValues(it->second, value, case_.tolerance);
      if (!d.equal) return Departs(absl::StrCat("output '", name, "'"), d.ToString());
    }
    for (const auto& [name, value] : results) {
      if (!expected.contains(name))
        return Departs(name, "is an output that the case does not have");
    }
    return absl::OkStatus();
  }

  absl::Status CompareDrawn() {
    for (const auto& [name, drawn] : case_.drawn) {
      const Tensor& tensor = model_->variables().at(name);
      ONWARD_RETURN_IF_ERROR(CheckDrawn(name, drawn, tensor));
      const auto [first, is_first] = first_draws_.emplace(name, tensor.Clone());
      if (!is_first && drawn.repeats && !Identical(first->second, tensor))
        return Departs(name, "is drawn anew although the node has a seed");
    }
    return absl::OkStatus();
  }

  const KitCase& case_;
  std::unique_ptr<TrainingModel> model_;
  std::optional<KitLists> lists_;
  std::map<std::string, Tensor> first_draws_;
};

// The steps of a case, by the models that PortableStep makes of it.
class PlainKitRun {
 public:
  explicit PlainKitRun(const KitCase& kit_case) : case_(kit_case) {}

  absl::Status Open() {
    ONWARD_ASSIGN_OR_RETURN(model_, ReadModel(case_.folder + "/model.onnx"));
    ONWARD_ASSIGN_OR_RETURN(const TrainingSpec spec, ImportTraining(model_));
    lists_.emplace(spec);
    if (!absl::SimpleAtoi(model_.Metadata(kMetaIteration), &iteration_)) iteration_ = 0;
    ONWARD_ASSIGN_OR_RETURN(variables_, ReadState(case_, 0));
    return absl::OkStatus();
  }

  absl::Status Act(size_t i) {
    absl::string_view action = case_.actions[i];
    if (action == "initialize") iteration_ = 0;
    if (!absl::ConsumePrefix(&action, "step")) {
      ONWARD_ASSIGN_OR_RETURN(variables_, ReadState(case_, i + 1));
      return absl::OkStatus();
    }
    int entry = -1;
    if (!absl::SimpleAtoi(action, &entry)) entry = -1;
    ONWARD_ASSIGN_OR_RETURN(PlainStep * step, StepOf(entry));
    ONWARD_ASSIGN_OR_RETURN(ValueMap feeds, ReadData(DataOf(case_, i), "input", lists_->inputs));
    ONWARD_ASSIGN_OR_RETURN(ValueMap expected,
                            ReadData(DataOf(case_, i), "output", lists_->outputs));
    ONWARD_ASSIGN_OR_RETURN(const ValueMap results, step->Run(feeds));
    for (auto& [name, value] : variables_) {
      if (step->state().contains(name)) value = step->state().at(name);
    }
    if (entry < 0) ++iteration_;
    for (const auto& [name, value] : expected) {
      const auto it = results.find(name);
      if (it == results.end()) return Departs(name, "is not among the outputs");
      const Difference d = CompareValues(it->second, value, case_.tolerance);
      if (!d.equal) return Departs(absl::StrCat("output '", name, "'"), d.ToString());
    }
    return CompareState(case_, i + 1, variables_);
  }

 private:
  // The step with the present state; a variable that the case does not have counts iterations.
  absl::StatusOr<PlainStep*> StepOf(int entry) {
    if (!steps_.contains(entry)) {
      const std::optional<int> alone = entry < 0 ? std::nullopt : std::optional<int>(entry);
      ONWARD_ASSIGN_OR_RETURN(const Model step, PortableStep(model_, alone, DefaultEnvironment()));
      ONWARD_ASSIGN_OR_RETURN(PlainStep made, PlainStep::Create(step));
      steps_.emplace(entry, std::move(made));
    }
    PlainStep& step = steps_.at(entry);
    for (const auto& [name, value] : variables_) step.Set(name, value);
    for (const auto& [name, output] : step.updates()) {
      if (!variables_.contains(name)) step.Set(name, Tensor::Scalar<int64_t>(iteration_));
    }
    return &step;
  }

  const KitCase& case_;
  Model model_;
  std::optional<KitLists> lists_;
  Variables variables_;
  int64_t iteration_ = 0;
  std::map<int, PlainStep> steps_;  // by entry; -1: all
};

// What must not be trained may still have to infer.
absl::Status CheckInference(const KitCase& kit_case) {
  for (size_t i = 0; i < kit_case.actions.size(); ++i) {
    ONWARD_ASSIGN_OR_RETURN(const Model model, ReadModel(kit_case.folder + "/model.onnx"));
    ONWARD_ASSIGN_OR_RETURN(Graph graph, RunnableGraph(model, DefaultEnvironment()));
    const fs::path data = DataOf(kit_case, i);
    ONWARD_ASSIGN_OR_RETURN(ValueMap feeds, ReadData(data, "input", graph.inputs));
    ONWARD_ASSIGN_OR_RETURN(ValueMap expected, ReadData(data, "output", graph.outputs));
    CompileOptions options = TestEnvironment().compile_options();
    Session session(std::move(graph), options);
    ONWARD_ASSIGN_OR_RETURN(ValueMap results, session.RunValues(feeds, nullptr));
    for (const auto& [name, value] : expected) {
      const Difference d = CompareValues(results.at(name), value, kit_case.tolerance);
      if (!d.equal) return Departs(absl::StrCat("output '", name, "'"), d.ToString());
    }
  }
  return absl::OkStatus();
}

// Exactly what the case says.
absl::Status CompareFindings(const KitCase& kit_case) {
  ONWARD_ASSIGN_OR_RETURN(Model model, ReadModel(kit_case.folder + "/model.onnx"));
  ONWARD_ASSIGN_OR_RETURN(std::vector<Finding> findings, CheckModel(model, DefaultEnvironment()));
  std::set<std::string> rules;
  for (const Finding& finding : findings) {
    rules.insert(finding.rule);
    if (finding.place.empty() || finding.what.empty() || finding.fix.empty())
      return Departs("check", absl::StrCat("incomplete: ", finding.ToString()));
  }
  if (absl::StrJoin(rules, ",") == absl::StrJoin(kit_case.findings, ",")) return absl::OkStatus();
  return Departs("check", absl::StrCat("found ", FindingsToStatus(findings).message(),
                                       "\nbut should: ", absl::StrJoin(kit_case.findings, ",")));
}

}  // namespace

std::string KitFolder() { return SourceFolder() + "/tests/training_conformance/cases"; }

std::vector<KitCase> ReadKit() {
  std::vector<KitCase> kit;
  for (const auto& entry : fs::recursive_directory_iterator(KitFolder())) {
    if (entry.path().filename() == "case.json") kit.push_back(ReadCase(entry.path().parent_path()));
  }
  std::sort(kit.begin(), kit.end(),
            [](const KitCase& a, const KitCase& b) { return a.name < b.name; });
  return kit;
}

absl::Status RunKitCase(const KitCase& kit_case) {
  ONWARD_RETURN_IF_ERROR(CompareFindings(kit_case));
  KitRun run(kit_case);
  const absl::Status opened = run.Open();
  if (kit_case.refused)
    return opened.ok() ? Departs("the file", "is not refused") : CheckInference(kit_case);
  // What can only fail may be refused at once.
  if (!opened.ok() && !kit_case.actions.empty() &&
      std::all_of(kit_case.actions.begin(), kit_case.actions.end(),
                  [](const std::string& action) { return absl::StartsWith(action, "fail "); }))
    return absl::OkStatus();
  ONWARD_RETURN_IF_ERROR(opened);
  for (size_t i = 0; i < kit_case.actions.size(); ++i) {
    if (absl::Status s = run.Act(i); !s.ok())
      return Annotate(s, absl::StrCat("action ", i, " (", kit_case.actions[i], ")"));
  }
  return absl::OkStatus();
}

bool HasPlainSteps(const KitCase& kit_case) {
  return !kit_case.refused && kit_case.drawn.empty() &&
         std::any_of(kit_case.actions.begin(), kit_case.actions.end(),
                     [](const std::string& action) { return absl::StartsWith(action, "step"); });
}

absl::Status RunPlainSteps(const KitCase& kit_case) {
  PlainKitRun run(kit_case);
  ONWARD_RETURN_IF_ERROR(run.Open());
  for (size_t i = 0; i < kit_case.actions.size(); ++i) {
    if (absl::Status s = run.Act(i); !s.ok())
      return Annotate(s, absl::StrCat("action ", i, " (", kit_case.actions[i], ")"));
  }
  return absl::OkStatus();
}

}  // namespace onward
