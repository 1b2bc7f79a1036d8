// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/devices/islands.h"

#include <cstddef>
#include <numeric>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"

namespace onward {
namespace {

constexpr size_t kWorkOfProducts = 64;

bool IsHeavy(const Node& node) {
  for (const char* part : {"MatMul", "Gemm", "Conv", "LSTM", "GRU", "RNN", "Attention", "Einsum"}) {
    if (absl::StrContains(node.op_type, part)) return true;
  }
  return false;
}

class Islands {
 public:
  explicit Islands(const Plan& plan) : plan_(plan), island_(plan.compute.size()) {
    std::iota(island_.begin(), island_.end(), 0);
    for (size_t s = 0; s < plan.compute.size(); ++s) {
      for (int id : plan.compute[s].outputs) {
        if (id >= 0) producer_[plan.values[id].root] = static_cast<int>(s);
      }
    }
    for (size_t s = 0; s < plan.compute.size(); ++s) {
      for (int id : plan.compute[s].inputs) {
        if (id >= 0) first_reader_.try_emplace(plan.values[id].root, static_cast<int>(s));
        if (!OnAccelerator(plan.compute[s])) continue;
        const int p = ProducerOf(id);
        if (p >= 0 && OnAccelerator(plan.compute[p])) {
          island_[Root(static_cast<int>(s))] = Root(p);
        }
      }
    }
  }

  absl::flat_hash_set<std::string> TooDear() {
    const size_t n = plan_.compute.size();
    std::vector<size_t> work(n, 0), copied(n, 0);
    std::vector<bool> updates(n, false);
    for (size_t s = 0; s < n; ++s) {
      const PlanStep& step = plan_.compute[s];
      if (step.transfer) {
        AddTransfer(step, &copied);
      } else if (OnAccelerator(step)) {
        work[Root(static_cast<int>(s))] +=
            BytesOf(step) * (IsHeavy(step.node) ? kWorkOfProducts : 1);
      }
    }
    for (const PlanStep& step : plan_.commit) {
      for (int id : step.inputs) {
        const int p = ProducerOf(id);
        if (p >= 0 && OnAccelerator(plan_.compute[p])) updates[Root(p)] = true;
      }
    }
    absl::flat_hash_set<std::string> names;
    for (size_t s = 0; s < n; ++s) {
      const PlanStep& step = plan_.compute[s];
      const int root = Root(static_cast<int>(s));
      if (!OnAccelerator(step) || updates[root] || copied[root] < work[root]) continue;
      names.insert(step.node.outputs[0]);
    }
    return names;
  }

 private:
  static bool OnAccelerator(const PlanStep& step) { return step.device != kHost && !step.transfer; }
  int ProducerOf(int id) const {
    if (id < 0) return -1;
    auto it = producer_.find(plan_.values[id].root);
    return it == producer_.end() ? -1 : it->second;
  }
  int Root(int s) {
    while (island_[s] != s) s = island_[s] = island_[island_[s]];
    return s;
  }
  size_t BytesOf(const PlanStep& step) const {
    size_t bytes = 0;
    for (const std::vector<int>* ids : {&step.inputs, &step.outputs}) {
      for (int id : *ids) {
        if (id >= 0 && plan_.values[id].shape.has_value()) bytes += plan_.values[id].bytes();
      }
    }
    return bytes;
  }

  // Copies from steps of the host, and to them.
  void AddTransfer(const PlanStep& step, std::vector<size_t>* copied) {
    const int from = ProducerOf(step.inputs[0]), to = step.outputs[0];
    if (from < 0) return;  // fed, or a variable
    const auto reader = first_reader_.find(plan_.values[to].root);
    if (reader == first_reader_.end()) return;  // returned
    const int island = OnAccelerator(plan_.compute[reader->second]) ? Root(reader->second)
                       : OnAccelerator(plan_.compute[from])         ? Root(from)
                                                                    : -1;
    if (island >= 0) (*copied)[island] += plan_.values[to].bytes();
  }

  const Plan& plan_;
  std::vector<int> island_;                                // step -> another one of its island
  absl::flat_hash_map<int, int> producer_, first_reader_;  // root value -> step
};

}  // namespace

absl::flat_hash_set<std::string> NotWorthTheirCopies(const Plan& plan) {
  return Islands(plan).TooDear();
}

}  // namespace onward
