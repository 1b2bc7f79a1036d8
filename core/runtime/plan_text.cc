// SPDX-License-Identifier: Apache-2.0
// Plans as text, for `bench --plan` and for tests.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/runtime/compile.h"

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
  auto print = [&](const std::vector<PlanStep>& steps) {
    for (const PlanStep& s : steps) {
      absl::StrAppend(&text, "  ", names(s.outputs), " = ", s.node.op_type, "(", names(s.inputs),
                      ")", s.late ? "  # shape known at run time" : "", "\n");
    }
  };
  absl::StrAppend(&text, "compute:\n");
  print(compute);
  absl::StrAppend(&text, "commit:\n");
  print(commit);
  for (const PlanCopy& c : copies)
    absl::StrAppend(&text, "  ", c.variable, " <- ", values[c.from].name, "\n");
  if (rest != nullptr) {
    absl::StrAppend(
        &text, "then, for the types of ",
        absl::StrJoin(outputs, ", ",
                      [](std::string* out, const auto& o) { absl::StrAppend(out, o.first); }),
        ": ", rest->graph->nodes.size(), " nodes\n");
  }
  absl::StrAppend(&text, "arena ", arena_bytes, " bytes, ", reorders, " reorders\n");
  return text;
}

}  // namespace onward
