// SPDX-License-Identifier: Apache-2.0
// StringConcat, StringSplit and RegexFullMatch.
#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/memory.h"
#include "core/device/plan/broadcast.h"
#include "core/ops/movement/movement.h"
#include "core/ops/text/text.h"

namespace onward {
namespace {

absl::StatusOr<Kernel> MakeStringConcat(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 2));
  ONWARD_RETURN_IF_ERROR(CheckStrings(request));
  Kernel kernel;
  kernel.run = [slot = OutputSlot(request, 0),
                node = KeepNode(request.node)](const KernelCall& call) -> absl::Status {
    const Tensor &a = *call.inputs[0], &b = *call.inputs[1];
    const absl::StatusOr<BroadcastPlan> plan = PlanBroadcast({a.shape(), b.shape()});
    if (!plan.ok()) return AtNode(*node, plan.status());
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, plan->shape));
    const std::string *left = a.data<std::string>(), *right = b.data<std::string>();
    std::string* out = output->data<std::string>();
    const int64_t left_step = plan->repeats[0] ? 0 : 1, right_step = plan->repeats[1] ? 0 : 1;
    // Strings that are joined again and again double each time.
    uint64_t letters = 0;
    plan->Walk(0, plan->elements, [&](const int64_t* offsets, int64_t, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        letters += left[offsets[0] + i * left_step].size();
        letters += right[offsets[1] + i * right_step].size();
      }
    });
    if (!MemoryIsThere(letters)) {
      return absl::ResourceExhaustedError(absl::StrCat(
          node->Describe(), ": strings of ", letters >> 20, " MB together do not fit into memory"));
    }
    plan->Walk(0, plan->elements, [&](const int64_t* offsets, int64_t position, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        out[position + i] =
            absl::StrCat(left[offsets[0] + i * left_step], right[offsets[1] + i * right_step]);
      }
    });
    return absl::OkStatus();
  };
  return kernel;
}

constexpr std::string_view kSpace = " \t\n\v\f\r";

// As Python's str.split: runs of white space part words, and none is empty.
std::vector<std::string_view> SplitAtSpace(std::string_view text, int64_t most) {
  std::vector<std::string_view> parts;
  size_t at = text.find_first_not_of(kSpace);
  while (at != std::string_view::npos) {
    const size_t end = static_cast<int64_t>(parts.size()) == most ? std::string_view::npos
                                                                  : text.find_first_of(kSpace, at);
    parts.push_back(text.substr(at, end == std::string_view::npos ? end : end - at));
    at = end == std::string_view::npos ? end : text.find_first_not_of(kSpace, end);
  }
  return parts;
}

std::vector<std::string_view> SplitAt(std::string_view text, std::string_view delimiter,
                                      int64_t most) {
  std::vector<std::string_view> parts;
  size_t at = 0;
  while (static_cast<int64_t>(parts.size()) < most) {
    const size_t end = text.find(delimiter, at);
    if (end == std::string_view::npos) break;
    parts.push_back(text.substr(at, end - at));
    at = end + delimiter.size();
  }
  parts.push_back(text.substr(at));
  return parts;
}

absl::StatusOr<Kernel> MakeStringSplit(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  ONWARD_RETURN_IF_ERROR(CheckStrings(request));
  const std::string delimiter = request.node.String("delimiter", "");
  // Without it, or below 0 as Python has it: as often as it can be.
  int64_t most = request.node.Int("maxsplit", -1);
  if (most < 0) most = INT64_MAX;
  Kernel kernel;
  kernel.run = [pieces = OutputSlot(request, 0), counts = OutputSlot(request, 1), delimiter,
                most](const KernelCall& call) -> absl::Status {
    const Tensor& input = *call.inputs[0];
    std::vector<std::vector<std::string_view>> split(input.elements());
    size_t widest = 0;
    for (size_t i = 0; i < split.size(); ++i) {
      const std::string& text = input.data<std::string>()[i];
      split[i] = delimiter.empty() ? SplitAtSpace(text, most) : SplitAt(text, delimiter, most);
      widest = std::max(widest, split[i].size());
    }
    if (pieces.wanted()) {
      Shape shape = input.shape();
      shape.push_back(static_cast<int64_t>(widest));
      ONWARD_ASSIGN_OR_RETURN(Tensor * output, pieces.Get(call, shape));
      std::string* row = output->data<std::string>();
      for (size_t i = 0; i < split.size(); ++i, row += widest) {
        std::string* rest = std::copy(split[i].begin(), split[i].end(), row);
        std::fill(rest, row + widest, std::string());
      }
    }
    if (counts.wanted()) {
      ONWARD_ASSIGN_OR_RETURN(Tensor * output, counts.Get(call, input.shape()));
      std::transform(split.begin(), split.end(), output->data<int64_t>(),
                     [](const auto& parts) { return static_cast<int64_t>(parts.size()); });
    }
    return absl::OkStatus();
  };
  return kernel;
}

absl::StatusOr<Kernel> MakeRegexFullMatch(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  ONWARD_RETURN_IF_ERROR(CheckStrings(request));
  // Its memory is bounded (RE2's own limit), its time is linear in the text.
  RE2::Options options;
  options.set_log_errors(false);
  const auto pattern = std::make_shared<const RE2>(request.node.String("pattern", ""), options);
  if (!pattern->ok()) {
    return NodeError(request.node,
                     absl::StrCat("the pattern '", request.node.String("pattern", ""),
                                  "' is no regular expression of RE2: ", pattern->error()));
  }
  Kernel kernel;
  kernel.run = [slot = OutputSlot(request, 0), pattern](const KernelCall& call) -> absl::Status {
    const Tensor& input = *call.inputs[0];
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, input.shape()));
    const auto texts = input.values<std::string>();
    std::transform(texts.begin(), texts.end(), output->data<bool>(),
                   [&](const std::string& text) { return RE2::FullMatch(text, *pattern); });
    return absl::OkStatus();
  };
  return kernel;
}

}  // namespace

void RegisterStringKernels(KernelTable& table) {
  table.Add("StringConcat", {"reference", 1, MakeStringConcat, "string"});
  table.Add("StringSplit", {"reference", 1, MakeStringSplit, "string"});
  table.Add("RegexFullMatch", {"re2", 1, MakeRegexFullMatch, "string"});
}

}  // namespace onward
