// SPDX-License-Identifier: Apache-2.0
#include "training_info/adapters/match.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "training_info/adapters/insert.h"

namespace onward {
namespace {

bool ReadsAt(const Node& node, int input, const std::string& value) {
  return node.HasInput(input) && node.inputs[input] == value;
}

// An element-wise node of two inputs: the other one.
std::string Partner(const Node& node, const std::string& value) {
  if (node.inputs.size() != 2) return "";
  return node.inputs[node.inputs[0] == value ? 1 : 0];
}

// Whether a node is what InsertAdapters would have written, but for names.
bool Is(const Node& node, const char* op, const Attributes& attributes) {
  Node plain;
  plain.op_type = op;
  Node given = plain;
  given.attributes = node.attributes;
  plain.attributes = attributes;
  return node.Is(op) && ToText(given) == ToText(plain);
}

absl::Status Unlike(const Adapter& adapter, const Node& node) {
  return absl::InvalidArgumentError(absl::StrCat(
      "the adapter of '", adapter.ToString(), "' does not look as it was written, at ",
      node.Describe(), ": another program may have changed the graph; `--merge none` keeps it"));
}

}  // namespace

AdapterMatcher::AdapterMatcher(const std::vector<Adapter>& adapters, const Graph& graph,
                               const Sight& sight)
    : adapters_(adapters), graph_(graph), sight_(sight) {
  for (const Node& node : graph.nodes) {
    // Captured values count as read by the node.
    for (const std::string& in : AllInputs(node)) readers_[in].push_back(&node);
    for (const std::string& out : node.outputs) producer_.emplace(out, &node);
  }
}

const Node* AdapterMatcher::LocalProducer(const std::string& value) const {
  auto it = producer_.find(value);
  return it == producer_.end() ? nullptr : it->second;
}

const Node* AdapterMatcher::OnlyReader(const Node* node) const {
  if (node == nullptr || !node->HasOutput(0) || graph_.IsOutput(node->outputs[0])) return nullptr;
  auto it = readers_.find(node->outputs[0]);
  if (it == readers_.end() || it->second.size() != 1) return nullptr;
  const Node* reader = it->second.front();
  const auto& inputs = reader->inputs;
  return std::count(inputs.begin(), inputs.end(), node->outputs[0]) == 1 ? reader : nullptr;
}

absl::StatusOr<AdapterUse> AdapterMatcher::MatchAt(const Adapter& adapter, const Node& down) const {
  AdapterUse use;
  use.adapter = &adapter;
  use.down = &down;
  const absl::Status unlike = Unlike(adapter, down);
  if (down.inputs.size() != 2) return unlike;
  const int at = ReadsAt(down, 1, adapter.a) ? 1 : 0;
  use.mul = OnlyReader(&down);
  if (use.mul == nullptr || !use.mul->Is("Mul")) return unlike;
  const auto scale = sight_.Stored(Partner(*use.mul, down.outputs[0]));
  if (!scale.has_value() || scale->elements() != 1 || !IsFloating(scale->dtype())) return unlike;
  use.scale = ToDoubles(*scale).value()[0];
  use.up = OnlyReader(use.mul);
  if (use.up == nullptr || !ReadsAt(*use.up, at, adapter.b)) return unlike;
  use.add = OnlyReader(use.up);
  if (use.add == nullptr || !use.add->Is("Add")) return unlike;
  use.base = LocalProducer(Partner(*use.add, use.up->outputs[0]));
  if (use.base == nullptr || OnlyReader(use.base) != use.add) return unlike;
  std::string x = down.inputs[1 - at];
  const Node* before = LocalProducer(x);
  if (before != nullptr && before->Is("Dropout") && OnlyReader(before) == &down) {
    use.dropout = before;
    x = before->inputs[0];
  }
  std::optional<Site> site = SiteOf(*use.base, sight_);
  if (!site.has_value() || site->input != at || !ReadsAt(*use.base, 1 - at, x)) return unlike;
  const bool conv = site->key.form == Site::Form::kConv;
  if (!Is(down,
          conv                   ? "Conv"
          : use.base->Is("Gemm") ? "Gemm"
                                 : "MatMul",
          DownAttributes(*site, *use.base)) ||
      !Is(*use.up, conv ? "Conv" : "MatMul", UpAttributes(*site))) {
    return unlike;
  }
  use.site = *std::move(site);
  return use;
}

absl::StatusOr<std::vector<AdapterUse>> AdapterMatcher::Match() const {
  std::vector<AdapterUse> uses;
  for (const Adapter& adapter : adapters_) {
    auto readers = readers_.find(adapter.a);
    if (readers == readers_.end()) continue;
    for (const Node* down : readers->second) {
      // Read inside a body: a matter of that body.
      if (std::count(down->inputs.begin(), down->inputs.end(), adapter.a) == 0) continue;
      ONWARD_ASSIGN_OR_RETURN(uses.emplace_back(), MatchAt(adapter, *down));
    }
  }
  return uses;
}

}  // namespace onward
