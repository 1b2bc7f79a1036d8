// SPDX-License-Identifier: Apache-2.0
#include "trainer/make/make_model.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status.h"

namespace onward {
namespace {

constexpr int64_t kWidest = 65536, kDeepest = 64;

// Steps that suffice for tables and texts of common size, and how many epochs they may be.
struct UsualTraining {
  const char* optimizer;
  int64_t steps, fewest_epochs, most_epochs;
};
constexpr UsualTraining kMlpTraining = {"adamw:lr=0.003,weight_decay=0.3", 10000, 20, 40};
// Of a small table a network soon learns every row by heart.
constexpr UsualTraining kSmallMlpTraining = {"adamw:lr=0.003,weight_decay=1", 10000, 15, 15};
constexpr int64_t kSmallTable = 2000;  // rows
constexpr UsualTraining kGptTraining = {"adamw:lr=0.001,weight_decay=0.1", 1000, 1, 50};
constexpr int64_t kLongestWarmup = 200, kSmallestBatch = 8, kUsualBatch = 64;

// Whole numbers with `separator` between them, each in range.
std::optional<std::vector<int64_t>> Sizes(absl::string_view text, char separator) {
  std::vector<int64_t> sizes;
  for (absl::string_view part : absl::StrSplit(text, separator)) {
    int64_t size = 0;
    if (!absl::SimpleAtoi(part, &size) || size < 1 || size > kWidest) return std::nullopt;
    sizes.push_back(size);
  }
  if (static_cast<int64_t>(sizes.size()) > kDeepest) return std::nullopt;
  return sizes;
}

absl::Status Wrong(const std::string& word) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", word, "': expected ", MadeModels(), ", as in mlp:64,64 or gpt:4x128"));
}

}  // namespace

std::string MadeModels() { return "mlp, mlp:WIDTH,WIDTH, gpt or gpt:LAYERSxWIDTH"; }

absl::StatusOr<std::optional<MadeSpec>> ParseMadeModel(const std::string& word) {
  if (word == "mlp") return MlpSpec();
  if (word == "gpt") return GptSpec();
  const std::pair<std::string, std::string> parts = absl::StrSplit(word, absl::MaxSplits(':', 1));
  if (word.find(':') == std::string::npos) return std::nullopt;
  if (parts.first == "mlp") {
    const auto hidden = Sizes(parts.second, ',');
    if (!hidden) return Wrong(word);
    return MlpSpec{*hidden};
  }
  if (parts.first != "gpt") return std::nullopt;
  const auto sizes = Sizes(parts.second, 'x');
  if (!sizes || sizes->size() != 2 || (*sizes)[0] > kDeepest) return Wrong(word);
  GptSpec gpt{(*sizes)[0], (*sizes)[1]};
  if (gpt.width % 32 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", word, "': expected a width that 32 divides, for heads of 32 each"));
  }
  return gpt;
}

absl::StatusOr<Model> MakeModel(const MadeSpec& spec, const Dataset& data, uint64_t seed,
                                const Environment& environment) {
  if (const auto* mlp = std::get_if<MlpSpec>(&spec)) return MakeMlp(*mlp, data, seed, environment);
  return MakeGpt(std::get<GptSpec>(spec), data, seed, environment);
}

MadeTraining TrainingFor(const MadeSpec& spec, const Dataset& data, const AskedTraining& asked) {
  const UsualTraining& usual = !std::holds_alternative<MlpSpec>(spec) ? kGptTraining
                               : data.size() < kSmallTable            ? kSmallMlpTraining
                                                                      : kMlpTraining;
  MadeTraining training;
  training.optimizer = usual.optimizer;
  // Small tables need steps more than large batches.
  training.batch = asked.batch.value_or(std::clamp(data.size() / 32, kSmallestBatch, kUsualBatch));
  training.batch = std::clamp<int64_t>(training.batch, 1, std::max<int64_t>(1, data.size()));
  const int64_t steps = std::max<int64_t>(1, data.size() / training.batch);
  training.epochs = asked.epochs.value_or(
      std::clamp(usual.steps / steps, usual.fewest_epochs, usual.most_epochs));
  const int64_t total = asked.steps.value_or(training.epochs * steps);
  const int64_t warmup = std::min({total / 20 + 1, kLongestWarmup, total - 1});
  training.schedule = warmup > 0 ? absl::StrCat("cosine:warmup=", warmup) : "cosine";
  return training;
}

}  // namespace onward
