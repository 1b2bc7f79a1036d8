// SPDX-License-Identifier: Apache-2.0
// StringNormalizer: drops stop words and changes the case of what is left.
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/ops/movement/movement.h"
#include "core/ops/text/text.h"

namespace onward {
namespace {

struct Normalizer {
  std::optional<Case> change;
  bool case_sensitive = false;
  absl::flat_hash_set<std::string> stop_words;  // in lower case unless case_sensitive

  absl::StatusOr<bool> Drops(const std::string& word) const {
    if (stop_words.empty()) return false;
    if (case_sensitive) return stop_words.contains(word);
    ONWARD_ASSIGN_OR_RETURN(const std::string lower, InCase(word, Case::kLower));
    return stop_words.contains(lower);
  }

  absl::StatusOr<std::vector<std::string>> Apply(absl::Span<const std::string> words) const {
    std::vector<std::string> kept;
    for (const std::string& word : words) {
      ONWARD_ASSIGN_OR_RETURN(const bool drops, Drops(word));
      if (drops) continue;
      if (!change.has_value()) {
        kept.push_back(word);
        continue;
      }
      ONWARD_ASSIGN_OR_RETURN(std::string changed, InCase(word, *change));
      kept.push_back(std::move(changed));
    }
    // The standard's way to say that nothing is left.
    if (kept.empty()) kept.emplace_back();
    return kept;
  }
};

absl::StatusOr<Normalizer> NormalizerOf(const Node& node) {
  Normalizer normalizer;
  const std::string action = node.String("case_change_action", "NONE");
  if (action == "LOWER") normalizer.change = Case::kLower;
  if (action == "UPPER") normalizer.change = Case::kUpper;
  normalizer.case_sensitive = node.Int("is_case_sensitive", 0) != 0;
  for (std::string& word : node.Strings("stopwords")) {
    if (!normalizer.case_sensitive) {
      absl::StatusOr<std::string> lower = InCase(word, Case::kLower);
      if (!lower.ok()) return AtNode(node, lower.status());
      word = *std::move(lower);
    }
    normalizer.stop_words.insert(std::move(word));
  }
  return normalizer;
}

absl::StatusOr<Kernel> MakeStringNormalizer(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  ONWARD_RETURN_IF_ERROR(CheckStrings(request));
  ONWARD_ASSIGN_OR_RETURN(Normalizer normalizer, NormalizerOf(request.node));
  Kernel kernel;
  kernel.run = [slot = OutputSlot(request, 0), node = KeepNode(request.node),
                normalizer = std::move(normalizer)](const KernelCall& call) -> absl::Status {
    const Tensor& input = *call.inputs[0];
    const Shape& shape = input.shape();
    if (!(shape.rank() == 1 || (shape.rank() == 2 && shape[0] == 1))) {
      return NodeError(*node,
                       absl::StrCat("takes words as [C] or [1, C], got shape ", shape.ToString()));
    }
    absl::StatusOr<std::vector<std::string>> words = normalizer.Apply(input.values<std::string>());
    if (!words.ok()) return AtNode(*node, words.status());
    const int64_t n = static_cast<int64_t>(words->size());
    ONWARD_ASSIGN_OR_RETURN(Tensor * output,
                            slot.Get(call, shape.rank() == 1 ? Shape{n} : Shape{1, n}));
    std::move(words->begin(), words->end(), output->data<std::string>());
    return absl::OkStatus();
  };
  return kernel;
}

}  // namespace

void RegisterNormalizerKernels(KernelTable& table) {
  table.Add("StringNormalizer", {"reference", 1, MakeStringNormalizer, "string"});
}

}  // namespace onward
