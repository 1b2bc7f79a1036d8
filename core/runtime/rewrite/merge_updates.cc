// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/rewrite/merge_updates.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace onward {
namespace {

bool SameAttributes(const Attributes& a, const Attributes& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, attribute] : a) {
    auto it = b.find(name);
    if (it == b.end()) return false;
    const auto *x = std::get_if<float>(&attribute.value),
               *y = std::get_if<float>(&it->second.value);
    const auto *s = std::get_if<std::string>(&attribute.value),
               *t = std::get_if<std::string>(&it->second.value);
    const bool same =
        (x != nullptr && y != nullptr && *x == *y) || (s != nullptr && t != nullptr && *s == *t);
    if (!same) return false;  // attributes of other kinds: never the same
  }
  return true;
}

// How many tensors the lists of a step have; nothing where it cannot be joined.
std::optional<int> ListLength(const PlanStep& step) {
  if (!step.kernel.lists.has_value() || step.late) return std::nullopt;
  const TensorLists& lists = *step.kernel.lists;
  const int n = (static_cast<int>(step.inputs.size()) - lists.leading) / lists.input_kinds;
  const bool whole =
      static_cast<int>(step.inputs.size()) == lists.leading + n * lists.input_kinds &&
      static_cast<int>(step.outputs.size()) == n * lists.output_kinds;
  return whole ? std::optional<int>(n) : std::nullopt;
}

bool CanJoin(const PlanStep& a, const PlanStep& b) {
  const int leading = a.kernel.lists->leading;
  return a.device == b.device && a.guard == b.guard && a.node.op_type == b.node.op_type &&
         a.node.domain == b.node.domain &&
         std::equal(a.inputs.begin(), a.inputs.begin() + leading, b.inputs.begin()) &&
         SameAttributes(a.node.attributes, b.node.attributes);
}

template <typename T>
void AppendLists(const std::vector<std::vector<T>>& rows, int begin, int kinds,
                 const std::vector<int>& lengths, std::vector<T>* joined) {
  for (int kind = 0; kind < kinds; ++kind) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto from = rows[i].begin() + begin + kind * lengths[i];
      joined->insert(joined->end(), from, from + lengths[i]);
    }
  }
}

class Merger {
 public:
  Merger(const EvaluateContext& context, Plan* plan) : context_(context), plan_(*plan) {}

  void Run() {
    std::vector<std::vector<PlanStep>> groups;
    for (PlanStep& step : plan_.commit) {
      const bool has_lists = ListLength(step).has_value();
      auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) {
        return has_lists && ListLength(g[0]).has_value() && CanJoin(g[0], step);
      });
      if (group == groups.end()) group = groups.insert(group, std::vector<PlanStep>());
      group->push_back(std::move(step));
    }
    plan_.commit.clear();
    for (std::vector<PlanStep>& group : groups) {
      if (group.size() > 1) {
        if (std::optional<PlanStep> joined = Join(group)) {
          plan_.commit.push_back(*std::move(joined));
          continue;
        }
      }
      std::move(group.begin(), group.end(), std::back_inserter(plan_.commit));
    }
  }

 private:
  std::optional<PlanStep> Join(const std::vector<PlanStep>& group) const {
    const TensorLists& lists = *group[0].kernel.lists;
    std::vector<int> lengths;
    std::vector<std::vector<int>> inputs, outputs;
    std::vector<std::vector<std::string>> in_names, out_names;
    for (const PlanStep& step : group) {
      lengths.push_back(*ListLength(step));
      inputs.push_back(step.inputs);
      outputs.push_back(step.outputs);
      in_names.push_back(step.node.inputs);
      out_names.push_back(step.node.outputs);
    }
    PlanStep joined;
    joined.node = group[0].node;
    joined.node.inputs.resize(lists.leading);
    joined.node.outputs.clear();
    joined.inputs.assign(inputs[0].begin(), inputs[0].begin() + lists.leading);
    AppendLists(inputs, lists.leading, lists.input_kinds, lengths, &joined.inputs);
    AppendLists(in_names, lists.leading, lists.input_kinds, lengths, &joined.node.inputs);
    AppendLists(outputs, 0, lists.output_kinds, lengths, &joined.outputs);
    AppendLists(out_names, 0, lists.output_kinds, lengths, &joined.node.outputs);
    joined.device = group[0].device;
    joined.guard = group[0].guard;
    EvaluateContext there = context_;
    there.device = &plan_.DeviceOf(joined.device);
    auto kernel = ChooseKernel(
        {joined.node, Specs(joined.inputs), Specs(joined.outputs), plan_.opsets}, there);
    if (!kernel.ok() || !kernel->infallible || !Fits(joined.inputs, kernel->input_layouts) ||
        !Fits(joined.outputs, kernel->output_layouts)) {
      return std::nullopt;
    }
    joined.kernel = *std::move(kernel);
    return joined;
  }

  std::vector<ValueSpec> Specs(const std::vector<int>& ids) const {
    std::vector<ValueSpec> specs(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] < 0) continue;
      const PlanValue& v = plan_.values[ids[i]];
      specs[i] = {v.dtype, v.shape, v.layout, nullptr};
    }
    return specs;
  }

  bool Fits(const std::vector<int>& ids, const std::vector<Layout>& layouts) const {
    for (size_t i = 0; i < ids.size(); ++i) {
      const Layout& layout = i < layouts.size() ? layouts[i] : nullptr;
      if (ids[i] >= 0 && !SameLayout(plan_.values[ids[i]].layout, layout)) return false;
    }
    return true;
  }

  const EvaluateContext& context_;
  Plan& plan_;
};

}  // namespace

void MergeUpdates(const EvaluateContext& context, Plan* plan) { Merger(context, plan).Run(); }

}  // namespace onward
