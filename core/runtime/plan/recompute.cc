// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/plan/recompute.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "core/runtime/plan/memory_plan.h"
#include "core/runtime/plan/uses.h"

namespace onward {
namespace {

constexpr int kLongestChain = 12;  // steps to compute one value again
constexpr int kMostRounds = 4000;
constexpr size_t kWorthDropping = 4096;  // bytes

// When a value is written and read. Reads after the compute phase count as one
// at its end.
struct Life {
  int written = -1;
  std::vector<int> reads;  // ascending
  size_t bytes = 0;
};

// Dropping a value between two reads.
struct Choice {
  int root = -1;
  int before = -1;         // the read it is computed again for
  std::vector<int> steps;  // that compute it, in order
  double score = 0;        // bytes saved per work
};

class Recomputer {
 public:
  explicit Recomputer(Plan* plan) : plan_(*plan) {}

  size_t Run(size_t limit) {
    Analyse();
    for (int round = 0; round < kMostRounds && peak_.bytes > limit; ++round) {
      const std::optional<Choice> choice = Best();
      if (!choice.has_value()) break;
      Apply(*choice);
      Analyse();
    }
    return peak_.bytes;
  }

 private:
  int End() const { return static_cast<int>(plan_.compute.size()); }
  int RootOf(int id) const { return plan_.values[id].root; }
  bool InArena(int root) const {
    const PlanValue& v = plan_.values[root];
    return v.storage == PlanValue::Storage::kArena && v.device == kHost;
  }

  void Analyse() {
    lives_.clear();
    ForEachUse(plan_, [&](int id, int step, Use use) {
      const int root = RootOf(id), at = std::min(step, End());
      if (!InArena(root) || use == Use::kShape) return;
      Life& life = lives_[root];
      if (use == Use::kWrite) {
        if (life.written < 0) life.written = at;
        life.bytes = plan_.values[root].bytes();
      } else if (life.reads.empty() || life.reads.back() != at) {
        life.reads.push_back(at);
      }
    });
    std::vector<Lifetime> live;
    for (const auto& [root, life] : lives_) {
      if (life.written >= 0) live.push_back({life.bytes, life.written, LastRead(life), 0});
    }
    for (int at = 0; at < End(); ++at) {
      live.push_back({plan_.compute[at].kernel.workspace_bytes, at, at, 0});
    }
    peak_ = FindLivePeak(live);
  }

  static int LastRead(const Life& life) {
    return life.reads.empty() ? life.written : std::max(life.written, life.reads.back());
  }

  // Work in arbitrary units: bytes touched, more for products.
  double Work(const PlanStep& step) const {
    double bytes = 1;
    for (const std::vector<int>* ids : {&step.inputs, &step.outputs}) {
      for (int id : *ids) {
        if (id >= 0 && plan_.values[id].shape.has_value())
          bytes += static_cast<double>(plan_.values[id].bytes());
      }
    }
    bool product = false;
    for (const char* op : {"Conv", "Gemm", "MatMul", "LSTM", "GRU", "RNN"}) {
      product |= absl::StrContains(step.node.op_type, op);
    }
    return product ? 30 * bytes : bytes;
  }

  // Adds the steps that give `root` at step `at`; false if they are too many or
  // need something that is gone by then.
  bool Chain(int root, int at, std::set<int>* steps) const {
    const Life& life = lives_.at(root);
    const PlanStep& step = plan_.compute[life.written];
    if (step.late || static_cast<int>(steps->size()) >= kLongestChain) return false;
    if (!steps->insert(life.written).second) return true;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const int id = step.inputs[i];
      if (id < 0 || plan_.operators->ShapeOnly(step.node, static_cast<int>(i))) continue;
      if (plan_.values[RootOf(id)].storage == PlanValue::Storage::kValue) return false;
      if (!InArena(RootOf(id))) continue;
      const Life& input = lives_.at(RootOf(id));
      if (input.written < 0) return false;
      const bool still_there = input.written < at && LastRead(input) >= at;
      if (!still_there && !Chain(RootOf(id), at, steps)) return false;
    }
    return true;
  }

  std::optional<Choice> Best() const {
    std::optional<Choice> best;
    for (const auto& [root, life] : lives_) {
      if (life.written < 0 || life.bytes < kWorthDropping || life.written >= peak_.step) continue;
      auto next = std::lower_bound(life.reads.begin(), life.reads.end(), peak_.step);
      // Read at the peak itself, or never again; or waiting for the end, where
      // nothing can be put before the reader.
      if (next == life.reads.end() || *next == peak_.step || *next == End()) continue;
      std::set<int> steps;
      if (!Chain(root, *next, &steps)) continue;
      double work = 0;
      for (int s : steps) work += Work(plan_.compute[s]);
      const double score = static_cast<double>(life.bytes) / work;
      if (!best.has_value() || score > best->score) {
        best = Choice{root, *next, {steps.begin(), steps.end()}, score};
      }
    }
    return best;
  }

  // The value that stands for `id` from now on: a copy of it, views included.
  int Renewed(int id, std::map<int, int>* renewed) {
    if (id < 0) return id;
    auto it = renewed->find(id);
    if (it != renewed->end()) return it->second;
    const int root = RootOf(id);
    const bool own = renewed->contains(root);
    if (id != root && !own) return id;
    PlanValue copy = plan_.values[id];
    const int fresh = static_cast<int>(plan_.values.size());
    copy.root = id == root ? fresh : renewed->at(root);
    plan_.values.push_back(std::move(copy));
    (*renewed)[id] = fresh;
    return fresh;
  }

  void Apply(const Choice& choice) {
    std::map<int, int> renewed;
    std::vector<PlanStep> again;
    for (int s : choice.steps) {
      PlanStep step = plan_.compute[s];
      for (int& id : step.inputs) {
        if (id >= 0 && renewed.contains(RootOf(id))) id = Renewed(id, &renewed);
      }
      for (int& id : step.outputs) {
        if (id < 0) continue;
        const int fresh = static_cast<int>(plan_.values.size());
        PlanValue copy = plan_.values[id];
        copy.root = fresh;
        plan_.values.push_back(std::move(copy));
        renewed[id] = fresh;
        id = fresh;
      }
      again.push_back(std::move(step));
    }
    // Only the dropped value is replaced; what else the chain made on the way is
    // still there for those who read the original.
    std::map<int, int> replaced = {{choice.root, renewed.at(choice.root)}};
    const auto replace = [&](int& id) {
      if (id >= 0 && RootOf(id) == choice.root) id = Renewed(id, &replaced);
    };
    for (int at = choice.before; at < End(); ++at) {
      for (int& id : plan_.compute[at].inputs) replace(id);
    }
    for (PlanStep& step : plan_.commit) {
      for (int& id : step.inputs) replace(id);
    }
    for (auto& [name, id] : plan_.outputs) replace(id);
    for (int& id : plan_.finite) replace(id);
    for (PlanCopy& copy : plan_.copies) replace(copy.from);
    plan_.compute.insert(plan_.compute.begin() + choice.before, again.begin(), again.end());
  }

  Plan& plan_;
  std::map<int, Life> lives_;  // by root
  LivePeak peak_;
};

}  // namespace

size_t RecomputeToFit(size_t limit, Plan* plan) { return Recomputer(plan).Run(limit); }

}  // namespace onward
