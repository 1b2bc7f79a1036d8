// SPDX-License-Identifier: Apache-2.0
#include "training_info/training_facts.h"

#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "training_info/author_update.h"
#include "training_info/averages.h"
#include "training_info/loss_parts.h"

namespace onward {

TrainingFacts GatherTrainingFacts(const Model& model, const TrainingSpec& spec) {
  TrainingFacts facts;
  facts.said = StoredRecipe(model);
  if (const std::optional<LossParts> losses = StoredLosses(model)) {
    for (const LossPart& part : losses->parts) facts.losses.push_back(LossTermText(part.term));
  }
  facts.averages = AveragesOf(spec);
  for (const TrainingEntry& entry : spec.entries) {
    for (const auto& [name, tensor] : entry.algorithm.initializers) {
      const std::string weight = entry.algorithm.ValueMetadata(name, kMasterOfKey);
      if (!weight.empty()) facts.masters.emplace(name, weight);
    }
  }
  facts.scale = StoredScale(model, spec);
  const Tensor* calls = spec.FindInitializer(kCallsVariable);
  if (calls != nullptr && calls->dtype() == DType::kInt64 && calls->elements() == 1)
    facts.accumulated = *calls->data<int64_t>();
  for (const std::string& name : spec.StateVariables()) {
    const Tensor* variable = spec.FindInitializer(name);
    if (variable == nullptr || spec.inference.initializers.contains(name)) continue;
    ++facts.state;
    facts.state_bytes += static_cast<int64_t>(variable->bytes());
  }
  facts.adapters = FindAdapters(spec.inference);
  return facts;
}

std::string PrecisionWords(const TrainingFacts& facts) {
  std::vector<std::string> parts;
  if (!facts.said.precision.empty())
    parts.push_back(absl::StrCat("products in ", facts.said.precision));
  if (!facts.masters.empty())
    parts.push_back(absl::StrCat("float master copies of ", facts.masters.size(), " weights"));
  if (facts.scale.has_value()) {
    if (facts.scale->scale > 0)
      parts.push_back(absl::StrCat("the loss is scaled by ", facts.scale->scale));
    if (facts.scale->skipped >= 0)
      parts.push_back(absl::StrCat("skipped steps: ", facts.scale->skipped));
  }
  return absl::StrJoin(parts, ", ");
}

std::string AccumulationWords(const TrainingFacts& facts) {
  if (facts.said.accumulate <= 1) return "";
  return absl::StrCat("an update of ", facts.said.accumulate, " steps, ", facts.accumulated,
                      " of them done");
}

std::string AveragesWords(const TrainingFacts& facts) {
  if (facts.averages.empty()) return "";
  std::string words = absl::StrCat("of ", facts.averages.size(), " weights");
  if (facts.said.ema > 0) absl::StrAppend(&words, ", decay ", facts.said.ema);
  return words;
}

std::string AdaptersWords(const TrainingFacts& facts) {
  std::map<std::tuple<int64_t, double, double>, int> kinds;
  for (const Adapter& adapter : facts.adapters)
    ++kinds[{adapter.rank, adapter.alpha, adapter.dropout}];
  return absl::StrJoin(kinds, "; ", [](std::string* out, const auto& kind) {
    const auto [rank, alpha, dropout] = kind.first;
    absl::StrAppend(out, kind.second, " of rank ", rank, ", alpha ", alpha);
    if (dropout > 0) absl::StrAppend(out, ", dropout ", dropout);
  });
}

}  // namespace onward
