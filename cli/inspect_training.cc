// SPDX-License-Identifier: Apache-2.0
#include "cli/inspect_training.h"

#include <iostream>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/size_text.h"
#include "trainer/report/page/report.h"
#include "trainer/run/options.h"
#include "training_info/author_update.h"
#include "training_info/averages.h"
#include "training_info/loss_parts.h"
#include "training_info/loss_scale.h"
#include "training_info/rate.h"
#include "training_info/step.h"
#include "training_info/stored_recipe.h"

namespace onward {
namespace {

// How the file is trained, beside optimizer and schedule, and where it stands.
struct Recipe {
  RecipeFacts said;                             // by the metadata
  std::vector<std::string> losses;              // as --loss takes them
  std::map<std::string, std::string> averages;  // variable -> weight
  std::map<std::string, std::string> masters;
  std::optional<ScaleFacts> scale;
  int64_t accumulated = 0;             // steps since the last update
  int64_t state = 0, state_bytes = 0;  // variables beside those of the inference graph
};

Recipe GatherRecipe(const Model& model, const TrainingSpec& spec) {
  Recipe recipe;
  recipe.said = StoredRecipe(model);
  if (const std::optional<LossParts> losses = StoredLosses(model)) {
    for (const LossPart& part : losses->parts) recipe.losses.push_back(LossTermText(part.term));
  }
  recipe.averages = AveragesOf(spec);
  for (const TrainingEntry& entry : spec.entries) {
    for (const auto& [name, tensor] : entry.algorithm.initializers) {
      const std::string weight = entry.algorithm.ValueMetadata(name, kMasterOfKey);
      if (!weight.empty()) recipe.masters.emplace(name, weight);
    }
  }
  recipe.scale = StoredScale(model, spec);
  const Tensor* calls = spec.FindInitializer(kCallsVariable);
  if (calls != nullptr && calls->dtype() == DType::kInt64 && calls->elements() == 1)
    recipe.accumulated = *calls->data<int64_t>();
  for (const std::string& name : spec.StateVariables()) {
    const Tensor* variable = spec.FindInitializer(name);
    if (variable == nullptr || spec.inference.initializers.contains(name)) continue;
    ++recipe.state;
    recipe.state_bytes += static_cast<int64_t>(variable->bytes());
  }
  return recipe;
}

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

std::string PrecisionText(const Recipe& recipe) {
  std::vector<std::string> parts;
  if (!recipe.said.precision.empty())
    parts.push_back(absl::StrCat("products in ", recipe.said.precision));
  if (!recipe.masters.empty())
    parts.push_back(absl::StrCat("float master copies of ", recipe.masters.size(), " weights"));
  if (recipe.scale.has_value()) {
    if (recipe.scale->scale > 0)
      parts.push_back(absl::StrCat("the loss is scaled by ", recipe.scale->scale));
    if (recipe.scale->skipped >= 0)
      parts.push_back(absl::StrCat("skipped steps: ", recipe.scale->skipped));
  }
  return absl::StrJoin(parts, ", ");
}

void PrintRecipe(const Recipe& recipe) {
  for (const GroupFacts& group : recipe.said.groups) {
    std::cout << "group " << group.options << ": " << absl::StrJoin(group.weights, ", ") << "\n";
  }
  if (!recipe.said.clip.empty()) std::cout << "clipping: " << recipe.said.clip << "\n";
  if (const std::string text = PrecisionText(recipe); !text.empty())
    std::cout << "precision: " << text << "\n";
  if (recipe.said.accumulate > 1) {
    std::cout << "accumulation: an update of " << recipe.said.accumulate << " steps, "
              << recipe.accumulated << " of them done\n";
  }
  if (!recipe.averages.empty()) {
    std::cout << "averages: of " << recipe.averages.size() << " weights";
    if (recipe.said.ema > 0) std::cout << ", decay " << recipe.said.ema;
    std::cout << "\n";
  }
  if (recipe.state > 0) {
    std::cout << "state: " << recipe.state << " variables beside the weights, "
              << SizeText(recipe.state_bytes) << "\n";
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

void WriteRecipe(const Recipe& recipe, JsonWriter* w) {
  w->Key("losses").Values(recipe.losses).Key("groups").BeginArray();
  for (const GroupFacts& group : recipe.said.groups) {
    w->BeginObject().Field("options", group.options);
    w->Key("weights").Values(group.weights).EndObject();
  }
  w->EndArray();
  const auto text = [&](const char* key, const std::string& value) {
    value.empty() ? w->Key(key).Null() : w->Field(key, value);
  };
  text("clip", recipe.said.clip);
  text("precision", recipe.said.precision);
  WriteNames("masters", recipe.masters, w);
  const ScaleFacts scale = recipe.scale.value_or(ScaleFacts());
  scale.scale > 0 ? w->Field("loss_scale", scale.scale) : w->Key("loss_scale").Null();
  scale.skipped >= 0 ? w->Field("skipped_steps", scale.skipped) : w->Key("skipped_steps").Null();
  w->Field("accumulate", recipe.said.accumulate).Field("accumulated", recipe.accumulated);
  recipe.said.ema > 0 ? w->Field("ema", recipe.said.ema) : w->Key("ema").Null();
  WriteNames("averages", recipe.averages, w);
  w->Field("state_bytes", recipe.state_bytes);
}

}  // namespace

void PrintTraining(const Model& model, const TrainingSpec& spec) {
  if (spec.entries.empty()) {
    std::cout << "training: none in the file\n";
    return;
  }
  for (size_t k = 0; k < spec.entries.size(); ++k) PrintEntry(k, spec.entries[k]);
  const Recipe recipe = GatherRecipe(model, spec);
  if (const std::string loss = model.Metadata(kMetaLoss); !loss.empty()) {
    std::cout << "loss: " << loss;
    if (!recipe.losses.empty()) std::cout << " = " << absl::StrJoin(recipe.losses, " + ");
    std::cout << "\n";
  }
  if (const auto rate = StoredRate(model); rate.ok()) {
    std::cout << "optimizer: " << OptimizerWords(rate->optimizer)
              << "\nschedule: " << ScheduleText(rate->schedule) << "\n";
  }
  if (const std::string steps = model.Metadata(kMetaSteps); !steps.empty())
    std::cout << "steps done: " << steps << "\n";
  PrintRecipe(recipe);
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
  WriteRecipe(GatherRecipe(model, spec), w);
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
