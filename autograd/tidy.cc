// SPDX-License-Identifier: Apache-2.0
#include "autograd/tidy.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "autograd/prepare.h"
#include "core/graph/random.h"

namespace onward {
namespace {

// Larger constants are not compared.
constexpr size_t kMaxComparedBytes = 1024;

bool HasSubgraph(const Node& node) {
  bool has = false;
  ForEachBody(node, [&](const std::string&, const Graph&) { has = true; });
  return has;
}

// Appends text that two attributes share only if they are equal; false where
// they are not worth comparing.
struct AttributeText {
  std::string* out;

  bool operator()(int64_t v) const { return Add("i", v); }
  bool operator()(float v) const { return Add("f", std::bit_cast<uint32_t>(v)); }
  bool operator()(const std::string& v) const { return Add("s", absl::StrCat(v.size(), ":", v)); }
  bool operator()(const Attribute::Body&) const { return false; }
  bool operator()(const ValueType&) const { return false; }
  bool operator()(const Tensor& t) const {
    if (t.dtype() == DType::kString || t.bytes() > kMaxComparedBytes) return false;
    absl::StrAppend(out, "t", static_cast<int>(t.dtype()), t.shape().ToString());
    out->append(static_cast<const char*>(t.raw()), t.bytes());
    return true;
  }
  template <typename T>
  bool operator()(const std::vector<T>& values) const {
    absl::StrAppend(out, "[", values.size());
    return std::all_of(values.begin(), values.end(), *this);
  }
  template <typename T>
  bool Add(const char* kind, const T& v) const {
    absl::StrAppend(out, kind, v, ";");
    return true;
  }
};

// Equal for nodes that compute the same; nullopt: not to be merged.
std::optional<std::string> Fingerprint(const Node& node) {
  if (IsRandom(node) || HasSubgraph(node)) return std::nullopt;
  std::string text = absl::StrCat(node.domain, "\n", node.op_type, "\n", node.overload, "\n");
  for (const std::string& in : node.inputs) absl::StrAppend(&text, in, "\n");
  for (const auto& [name, attribute] : node.attributes) {
    if (!attribute.ref.empty()) return std::nullopt;
    absl::StrAppend(&text, "\t", name, "=");
    if (!std::visit(AttributeText{&text}, attribute.value)) return std::nullopt;
  }
  return text;
}

// Whether `node` gives every output that `other` gives.
bool Covers(const Node& node, const Node& other) {
  for (size_t i = 0; i < other.outputs.size(); ++i) {
    if (!other.outputs[i].empty() && !node.HasOutput(static_cast<int>(i))) return false;
  }
  return true;
}

void Replace(const absl::flat_hash_map<std::string, std::string>& names, std::string* value) {
  if (auto it = names.find(*value); it != names.end()) *value = it->second;
}

}  // namespace

absl::flat_hash_set<std::string> CapturedBySubgraphs(const std::vector<Node>& nodes) {
  absl::flat_hash_set<std::string> captured;
  for (const Node& node : nodes) {
    ForEachBody(node, [&](const std::string&, const Graph& body) {
      for (std::string& v : CapturedValues(body)) captured.insert(std::move(v));
    });
  }
  return captured;
}

void RemoveUnused(Graph* graph, size_t first, const std::vector<std::string>& wanted) {
  absl::flat_hash_set<std::string> live(wanted.begin(), wanted.end());
  std::vector<Node> kept;
  for (size_t i = graph->nodes.size(); i-- > first;) {
    Node& node = graph->nodes[i];
    const bool used = std::any_of(node.outputs.begin(), node.outputs.end(),
                                  [&](const std::string& v) { return live.contains(v); });
    if (!used) {
      for (const std::string& v : node.outputs) graph->types.erase(v);
      continue;
    }
    for (std::string& v : AllInputs(node)) live.insert(std::move(v));
    kept.push_back(std::move(node));
  }
  graph->nodes.resize(first);
  std::move(kept.rbegin(), kept.rend(), std::back_inserter(graph->nodes));
}

void MergeEqual(Graph* graph, size_t first, std::vector<std::string>* wanted) {
  const absl::flat_hash_set<std::string> captured = CapturedBySubgraphs(graph->nodes);
  absl::flat_hash_map<std::string, size_t> seen;  // fingerprint -> index in `kept`
  absl::flat_hash_map<std::string, std::string> names;
  std::vector<Node> kept;
  kept.reserve(graph->nodes.size());
  for (size_t i = 0; i < graph->nodes.size(); ++i) {
    Node& node = graph->nodes[i];
    for (std::string& v : node.inputs) Replace(names, &v);
    std::optional<std::string> text = Fingerprint(node);
    if (text) {
      auto [it, is_new] = seen.try_emplace(*std::move(text), kept.size());
      const bool is_captured =
          std::any_of(node.outputs.begin(), node.outputs.end(),
                      [&](const std::string& v) { return captured.contains(v); });
      if (!is_new && i >= first && !is_captured && Covers(kept[it->second], node)) {
        for (size_t k = 0; k < node.outputs.size(); ++k) {
          if (node.outputs[k].empty()) continue;
          names[node.outputs[k]] = kept[it->second].outputs[k];
          graph->types.erase(node.outputs[k]);
        }
        continue;
      }
    }
    kept.push_back(std::move(node));
  }
  graph->nodes = std::move(kept);
  for (std::string& v : *wanted) Replace(names, &v);
}

absl::flat_hash_set<std::string> RenamableValues(const Graph& graph, size_t first) {
  absl::flat_hash_set<std::string> values;
  for (size_t i = first; i < graph.nodes.size(); ++i) {
    values.insert(graph.nodes[i].outputs.begin(), graph.nodes[i].outputs.end());
  }
  for (const std::string& v : CapturedBySubgraphs(graph.nodes)) values.erase(v);
  return values;
}

void RenameGenerated(Graph* graph, size_t first,
                     const absl::flat_hash_map<std::string, std::string>& names) {
  for (size_t i = first; i < graph->nodes.size(); ++i) {
    for (std::string& v : graph->nodes[i].inputs) Replace(names, &v);
    for (std::string& v : graph->nodes[i].outputs) Replace(names, &v);
  }
  for (const auto& [from, to] : names) {
    if (auto it = graph->types.find(from); it != graph->types.end()) {
      ValueType type = std::move(it->second);
      graph->types.erase(it);
      graph->types[to] = std::move(type);
    }
  }
}

}  // namespace onward
