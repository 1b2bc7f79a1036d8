// SPDX-License-Identifier: Apache-2.0
// Plans as text, for `bench --plan` and for tests.
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/runtime/compile/compile.h"

namespace onward {

namespace {

// "graph 1 of cuda:0, 12 steps" or "host, 1 step"
std::string Heading(const Plan& plan, const Stretch& stretch, int* graphs) {
  const int steps = stretch.end - stretch.begin;
  const std::string where =
      stretch.device == kHost
          ? "host"
          : absl::StrCat("graph ", ++*graphs, " of ", plan.DeviceOf(stretch.device).name());
  return absl::StrCat(where, ", ", steps, steps == 1 ? " step" : " steps");
}

// What assigns variables on accelerators is done as a whole: by the last stretch, or by itself.
std::string GraphOfCommit(const Plan& plan, int* graphs) {
  if (plan.commits_in_stretch) return absl::StrCat(", in graph ", *graphs);
  const bool any =
      absl::c_any_of(plan.commit, [](const PlanStep& s) { return s.device != kHost; }) ||
      absl::c_any_of(plan.copies,
                     [&](const PlanCopy& copy) { return plan.values[copy.from].device != kHost; });
  return any ? absl::StrCat(", graph ", ++*graphs) : "";
}

}  // namespace

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
    return absl::StrCat("  @", DeviceOf(s.bodies_there ? 1 : s.device).name(),
                        s.why.empty() ? "" : " (" + s.why + ")");
  };
  auto guard = [&](const PlanGuard& g) -> std::string {
    if (g.always()) return "";
    return absl::StrCat("  ", g.when ? "if " : "unless ", values[g.value].name);
  };
  auto print = [&](const PlanStep& s) {
    absl::StrAppend(&text, "  ", names(s.outputs), " = ", s.node.op_type, "(", names(s.inputs), ")",
                    place(s), guard(s.guard), s.late ? "  # shape known at run time" : "", "\n");
  };
  absl::StrAppend(&text, "compute:\n");
  if (stretches.empty()) absl::c_for_each(compute, print);
  int graphs = 0;
  for (const Stretch& stretch : stretches) {
    absl::StrAppend(&text, Heading(*this, stretch, &graphs), ":\n");
    for (int s = stretch.begin; s < stretch.end; ++s) print(compute[s]);
  }
  absl::StrAppend(&text, "commit", GraphOfCommit(*this, &graphs), ":\n");
  absl::c_for_each(commit, print);
  for (const PlanCopy& c : copies)
    absl::StrAppend(&text, "  ", c.variable, " <- ", values[c.from].name, guard(c.guard), "\n");
  if (rest != nullptr) {
    absl::StrAppend(
        &text, "then, for the types of ",
        absl::StrJoin(outputs, ", ",
                      [](std::string* out, const auto& o) { absl::StrAppend(out, o.first); }),
        ": ", rest->graph->nodes.size(), " nodes\n");
  }
  if (graphs > 0) {
    absl::StrAppend(&text, graphs, graphs == 1 ? " graph, " : " graphs, ",
                    slot_bytes + 2 * fed_bytes, " bytes of pinned memory\n");
  }
  absl::StrAppend(&text, "arena ", arena_bytes, " bytes, ", reorders, " reorders\n");
  for (size_t d = 0; d < accelerator_bytes.size(); ++d) {
    absl::StrAppend(&text, "arena ", accelerator_bytes[d], " bytes on ", accelerators[d]->name(),
                    "\n");
  }
  return text;
}

}  // namespace onward
