// SPDX-License-Identifier: Apache-2.0
#include "training_info/stored_recipe.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/json.h"
#include "core/base/spec.h"
#include "training_info/step.h"

namespace onward {
namespace {

std::string GroupsText(const std::vector<GroupFacts>& groups) {
  JsonWriter w;
  w.BeginArray();
  for (const GroupFacts& group : groups) {
    w.BeginObject().Field("options", group.options).Key("weights").BeginArray();
    for (const std::string& weight : group.weights) w.Bytes(weight);
    w.EndArray().EndObject();
  }
  return w.EndArray().text();
}

std::vector<GroupFacts> ReadGroups(const std::string& text) {
  std::vector<GroupFacts> groups;
  const absl::StatusOr<Json> json = ParseJson(text);
  if (!json.ok()) return groups;
  for (const Json& item : json->items()) {
    const Json *options = item.Find("options"), *weights = item.Find("weights");
    if (options == nullptr || weights == nullptr) continue;
    groups.push_back({options->text(), {}});
    for (const Json& weight : weights->items()) groups.back().weights.push_back(weight.text());
  }
  return groups;
}

}  // namespace

void StoreRecipe(const RecipeFacts& facts, Model* model) {
  const auto store = [&](const char* key, bool there, const std::string& value) {
    if (there) model->SetMetadata(key, value);
  };
  store(kMetaPrecision, !facts.precision.empty(), facts.precision);
  store(kMetaEma, facts.ema > 0, ExactText(facts.ema));
  store(kMetaClip, !facts.clip.empty(), facts.clip);
  store(kMetaAccumulate, facts.accumulate > 1, absl::StrCat(facts.accumulate));
  store(kMetaGroups, !facts.groups.empty(), GroupsText(facts.groups));
}

RecipeFacts StoredRecipe(const Model& model) {
  RecipeFacts facts;
  facts.precision = model.Metadata(kMetaPrecision);
  facts.clip = model.Metadata(kMetaClip);
  double ema = 0;
  if (absl::SimpleAtod(model.Metadata(kMetaEma), &ema)) facts.ema = ema;
  int64_t steps = 0;
  if (absl::SimpleAtoi(model.Metadata(kMetaAccumulate), &steps) && steps > 1)
    facts.accumulate = steps;
  if (const std::string groups = model.Metadata(kMetaGroups); !groups.empty())
    facts.groups = ReadGroups(groups);
  return facts;
}

}  // namespace onward
