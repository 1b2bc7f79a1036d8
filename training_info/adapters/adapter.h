// SPDX-License-Identifier: Apache-2.0
// Low-rank adapters (LoRA). Beside a product with a weight W, which stays as it is, stands a
// product with two small matrices that learn:
//
//   y = x W + scale ((x A) B),  scale = alpha / rank
//
// A begins at random and B at zero, so that y begins as it was. In the file these are plain nodes
// of the inference graph and two initializers whose metadata_props say what they belong to; a
// runtime needs to know nothing of it. docs/decisions/0027-adapters.md has the reasons.
#ifndef ONWARD_TRAINING_INFO_ADAPTERS_ADAPTER_H_
#define ONWARD_TRAINING_INFO_ADAPTERS_ADAPTER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/graph/graph.h"

namespace onward {

// Which weights get one: 'attention.*:rank=8,alpha=16,dropout=0.1'. Defaults are those of PEFT.
struct LoraSpec {
  std::string pattern;
  int64_t rank = 8;
  double alpha = 8;
  double dropout = 0;  // of what goes into A, in training
};
absl::StatusOr<LoraSpec> ParseLora(absl::string_view text);
// The same checks for a spec that a program has made.
absl::Status CheckLora(const LoraSpec& spec);

// Metadata of the initializers A and B.
inline constexpr char kLoraPartKey[] = "ai.onward.lora.part";      // kLoraDown or kLoraUp
inline constexpr char kLoraTargetKey[] = "ai.onward.lora.target";  // the name of W
inline constexpr char kLoraUseKey[] = "ai.onward.lora.use";  // Adapter::use, where it is not 0
inline constexpr char kLoraRankKey[] = "ai.onward.lora.rank";
inline constexpr char kLoraAlphaKey[] = "ai.onward.lora.alpha";
inline constexpr char kLoraDropoutKey[] = "ai.onward.lora.dropout";  // where it is not 0
inline constexpr char kLoraDown[] = "A";
inline constexpr char kLoraUp[] = "B";
// In a file of adapters: a weight that was trained whole beside them.
inline constexpr char kLoraWhole[] = "whole";

struct Adapter {
  std::string target;  // the weight
  int use = 0;         // which, of a weight that is used in several ways (say, also transposed)
  int64_t rank = 1;    // as asked for; A and B have less where a group of a Conv cannot use it
  double alpha = 1;
  double dropout = 0;
  std::string a, b;  // initializers

  double scale() const { return alpha / static_cast<double>(rank); }
  // "fc.weight", or "fc.weight (use 1)".
  std::string ToString() const;
};

// Those that the metadata of a graph's initializers tell of, by target and use. Metadata that
// tell of none are left alone: anybody may write them.
std::vector<Adapter> FindAdapters(const Graph& graph);
// The metadata of both initializers.
void WriteMetadata(const Adapter& adapter, Graph* graph);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_ADAPTERS_ADAPTER_H_
