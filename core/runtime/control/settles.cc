// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/control/settles.h"

#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/graph/random.h"

namespace onward {
namespace {

// A chain of carried values in which each takes the one before settles link by link; longer
// chains are not worth the time.
constexpr int kMostLinks = 16;

// What the same inputs need not give again. Operators of others may keep a state.
bool MayVary(const Node& node) {
  const bool known = node.domain.empty() || node.domain == kOnwardDomain;
  bool varies = !known || IsRandom(node);
  ForEachBody(node, [&](const std::string&, const Graph& body) {
    varies = varies || absl::c_any_of(body.nodes, MayVary);
  });
  return varies;
}

class Settling {
 public:
  Settling(const Graph& body, int own) : body_(body) {
    for (const auto& [name, tensor] : body.initializers) fixed_.insert(name);
    for (size_t i = own; i < body.inputs.size(); ++i) fixed_.insert(body.inputs[i].name);
    // An iteration is there only where the condition before it was true.
    fixed_.insert(body.inputs[1].name);
    for (const Node& node : body.nodes) {
      if (node.Is("Identity") && node.HasInput(0)) copies_[node.outputs[0]] = node.inputs[0];
    }
    // Carried value k, the condition being the first, is input k + 1 and output k.
    for (int k = 0; k + 1 < own; ++k) {
      if (Source(body.outputs[k].name) == body.inputs[k + 1].name) Settle(k);
    }
  }

  std::optional<int> At(const std::string& value, int own) {
    for (int links = 0; links <= kMostLinks; ++links) {
      Propagate();
      if (fixed_.contains(value)) return links;
      std::vector<int> next;
      for (int k = 0; k + 1 < own; ++k) {
        if (!fixed_.contains(body_.inputs[k + 1].name) && fixed_.contains(body_.outputs[k].name)) {
          next.push_back(k);
        }
      }
      if (next.empty()) return std::nullopt;
      for (const int k : next) Settle(k);
    }
    return std::nullopt;
  }

 private:
  void Settle(int k) { fixed_.insert(body_.inputs[k + 1].name); }

  // Nodes are in the order in which they run.
  void Propagate() {
    for (const Node& node : body_.nodes) {
      const auto fixed = [&](const std::string& name) {
        return name.empty() || fixed_.contains(name);
      };
      if (!absl::c_all_of(AllInputs(node), fixed) || MayVary(node)) continue;
      fixed_.insert(node.outputs.begin(), node.outputs.end());
    }
  }

  std::string Source(std::string name) const {
    for (size_t hops = 0; hops < copies_.size(); ++hops) {
      const auto it = copies_.find(name);
      if (it == copies_.end()) break;
      name = it->second;
    }
    return name;
  }

  const Graph& body_;
  absl::flat_hash_set<std::string> fixed_;
  absl::flat_hash_map<std::string, std::string> copies_;
};

}  // namespace

std::optional<int> ConditionSettlesAt(const Graph& body, int own) {
  if (own < 2 || static_cast<int>(body.outputs.size()) < own - 1) return std::nullopt;
  return Settling(body, own).At(body.outputs[0].name, own);
}

}  // namespace onward
