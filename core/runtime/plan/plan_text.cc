// SPDX-License-Identifier: Apache-2.0
// Plans as text, for `bench --plan` and for tests.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/runtime/compile/compile.h"
#include "core/runtime/devices/islands.h"

namespace onward {

std::string Plan::ToText() const {
  std::string text;
  auto names = [&](const std::vector<int>& ids) {
    return absl::StrJoin(ids, ", ", [&](std::string* out, int id) {
      if (id < 0) return;
      const PlanValue& v = values[id];
      absl::StrAppend(out, v.name, v.layout == nullptr ? "" : ":" + v.layout->ToString());
    });
  };
  auto place = [&](const PlanStep& s) -> std::string {
    if (accelerators.empty()) return "";
    if (s.transfer) {
      return absl::StrCat("  @", DeviceOf(values[s.inputs[0]].device).name(), " -> ",
                          DeviceOf(values[s.outputs[0]].device).name());
    }
    return absl::StrCat("  @", DeviceOf(s.device).name(), s.why.empty() ? "" : " (" + s.why + ")");
  };
  auto guard = [&](const PlanGuard& g) -> std::string {
    if (g.always()) return "";
    return absl::StrCat("  ", g.when ? "if " : "unless ", values[g.value].name);
  };
  auto print = [&](const std::vector<PlanStep>& steps) {
    for (const PlanStep& s : steps) {
      absl::StrAppend(&text, "  ", names(s.outputs), " = ", s.node.op_type, "(", names(s.inputs),
                      ")", place(s), guard(s.guard), s.late ? "  # shape known at run time" : "",
                      "\n");
    }
  };
  absl::StrAppend(&text, "compute:\n");
  print(compute);
  absl::StrAppend(&text, "commit:\n");
  print(commit);
  for (const PlanCopy& c : copies)
    absl::StrAppend(&text, "  ", c.variable, " <- ", values[c.from].name, guard(c.guard), "\n");
  if (rest != nullptr) {
    absl::StrAppend(
        &text, "then, for the types of ",
        absl::StrJoin(outputs, ", ",
                      [](std::string* out, const auto& o) { absl::StrAppend(out, o.first); }),
        ": ", rest->graph->nodes.size(), " nodes\n");
  }
  absl::StrAppend(&text, "arena ", arena_bytes, " bytes, ", reorders, " reorders\n");
  for (size_t d = 0; d < accelerator_bytes.size(); ++d) {
    absl::StrAppend(&text, "arena ", accelerator_bytes[d], " bytes on ", accelerators[d]->name(),
                    "\n");
  }
  return text;
}

std::vector<const PlanStep*> Plan::Fallbacks() const {
  std::vector<const PlanStep*> steps;
  if (accelerators.empty()) return steps;
  for (const PlanStep& step : compute) {
    const bool meant = step.why == kIsHostArithmetic || step.why == kIsIsland;
    if (step.device == kHost && !step.transfer && !meant && step.node.op_type != "Reorder") {
      steps.push_back(&step);
    }
  }
  return steps;
}

}  // namespace onward
