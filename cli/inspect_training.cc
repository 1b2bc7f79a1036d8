// SPDX-License-Identifier: Apache-2.0
#include "cli/inspect_training.h"

#include <iostream>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/size_text.h"
#include "trainer/report/page/report.h"
#include "trainer/run/options.h"
#include "training_info/rate.h"
#include "training_info/step.h"
#include "training_info/training_facts.h"

namespace onward {
namespace {

void PrintEntry(size_t k, const TrainingEntry& e) {
  std::map<std::string, int> ops;
  for (const Node& node : e.algorithm.nodes) {
    if (node.domain == kTrainingDomain || node.domain == kOnwardDomain) ++ops[OperatorName(node)];
  }
  std::cout << "training entry " << k << ": " << e.algorithm.nodes.size() << " nodes, "
            << e.update_bindings.size() << " updates, " << e.initialization_bindings.size()
            << " initializations\n";
  for (const auto& [op, n] : ops) std::cout << "  " << n << " x " << op << "\n";
  for (const NamedType& in : e.algorithm.inputs)
    std::cout << "  input " << in.name << ": " << in.type.ToString() << "\n";
  if (e.rate.problem.empty() && e.rate.every > 1)
    std::cout << "  every " << e.rate.every << " iterations, from " << e.rate.phase << "\n";
  for (const Binding& b : e.update_bindings)
    std::cout << "  " << b.variable << " <- " << b.value << "\n";
}

void PrintRecipe(const TrainingFacts& facts) {
  for (const GroupFacts& group : facts.said.groups) {
    std::cout << "group " << group.options << ": " << absl::StrJoin(group.weights, ", ") << "\n";
  }
  const auto print = [](const char* what, const std::string& words) {
    if (!words.empty()) std::cout << what << ": " << words << "\n";
  };
  print("clipping", facts.said.clip);
  print("precision", PrecisionWords(facts));
  print("accumulation", AccumulationWords(facts));
  print("averages", AveragesWords(facts));
  if (facts.state > 0) {
    std::cout << "state: " << facts.state << " variables beside the weights, "
              << SizeText(facts.state_bytes) << "\n";
  }
}

void WriteRate(const Model& model, JsonWriter* w) {
  const absl::StatusOr<RateRecipe> rate = StoredRate(model);
  const auto text = [&](const char* key, const std::string& value) {
    rate.ok() ? w->Field(key, value) : w->Key(key).Null();
  };
  text("optimizer", rate.ok() ? OptimizerChoiceText(rate->optimizer) : "");
  w->Field("learning_rate", rate.ok() ? rate->optimizer.lr() : kNotMeasured);
  text("schedule", rate.ok() ? ScheduleText(rate->schedule) : "");
  model.has_training() ? w->Field("steps_done", MetadataInt(model, kMetaSteps))
                       : w->Key("steps_done").Null();
}

void WriteNames(const char* key, const std::map<std::string, std::string>& names, JsonWriter* w) {
  w->Key(key).BeginObject();
  for (const auto& [variable, weight] : names) w->Field(variable, weight);
  w->EndObject();
}

void WriteRecipe(const TrainingFacts& facts, JsonWriter* w) {
  w->Key("losses").Values(facts.losses).Key("groups").BeginArray();
  for (const GroupFacts& group : facts.said.groups) {
    w->BeginObject().Field("options", group.options);
    w->Key("weights").Values(group.weights).EndObject();
  }
  w->EndArray();
  const auto text = [&](const char* key, const std::string& value) {
    value.empty() ? w->Key(key).Null() : w->Field(key, value);
  };
  text("clip", facts.said.clip);
  text("precision", facts.said.precision);
  WriteNames("masters", facts.masters, w);
  const ScaleFacts scale = facts.scale.value_or(ScaleFacts());
  scale.scale > 0 ? w->Field("loss_scale", scale.scale) : w->Key("loss_scale").Null();
  scale.skipped >= 0 ? w->Field("skipped_steps", scale.skipped) : w->Key("skipped_steps").Null();
  w->Field("accumulate", facts.said.accumulate).Field("accumulated", facts.accumulated);
  facts.said.ema > 0 ? w->Field("ema", facts.said.ema) : w->Key("ema").Null();
  WriteNames("averages", facts.averages, w);
  w->Field("state_bytes", facts.state_bytes);
}

}  // namespace

void PrintTraining(const Model& model, const TrainingSpec& spec) {
  if (spec.entries.empty()) {
    std::cout << "training: none in the file\n";
    return;
  }
  for (size_t k = 0; k < spec.entries.size(); ++k) PrintEntry(k, spec.entries[k]);
  const TrainingFacts facts = GatherTrainingFacts(model, spec);
  if (const std::string loss = model.Metadata(kMetaLoss); !loss.empty()) {
    std::cout << "loss: " << loss;
    if (!facts.losses.empty()) std::cout << " = " << absl::StrJoin(facts.losses, " + ");
    std::cout << "\n";
  }
  if (const auto rate = StoredRate(model); rate.ok()) {
    std::cout << "optimizer: " << OptimizerWords(rate->optimizer)
              << "\nschedule: " << ScheduleText(rate->schedule) << "\n";
  }
  if (const std::string steps = model.Metadata(kMetaSteps); !steps.empty())
    std::cout << "steps done: " << steps << "\n";
  PrintRecipe(facts);
}

void WriteTraining(const Model& model, const TrainingSpec& spec, JsonWriter* w) {
  w->Key("training").BeginArray();
  for (const TrainingEntry& e : spec.entries) {
    w->BeginObject().Key("update_bindings").BeginObject();
    for (const Binding& b : e.update_bindings) w->Field(b.variable, b.value);
    w->EndObject().Key("initialization_bindings").BeginObject();
    for (const Binding& b : e.initialization_bindings) w->Field(b.variable, b.value);
    w->EndObject().Field("every", e.rate.every).Field("phase", e.rate.phase);
    WriteValues("inputs", e.algorithm.inputs, w);
    w->EndObject();
  }
  w->EndArray().Field("loss", model.Metadata(kMetaLoss));
  WriteRate(model, w);
  WriteRecipe(GatherTrainingFacts(model, spec), w);
  const std::set<std::string> state = spec.StateVariables();
  w->Key("state").Values(std::vector<std::string>(state.begin(), state.end()));
}

void WriteValues(const char* key, const std::vector<NamedType>& values, JsonWriter* w) {
  w->Key(key).BeginArray();
  for (const NamedType& v : values)
    w->BeginObject().Field("name", v.name).Field("type", v.type.ToString()).EndObject();
  w->EndArray();
}

std::string OperatorName(const Node& node) {
  return node.domain.empty() ? node.op_type : absl::StrCat(node.domain, ".", node.op_type);
}

}  // namespace onward
