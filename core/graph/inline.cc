// SPDX-License-Identifier: Apache-2.0
#include "core/graph/inline.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/verify.h"

namespace onward {
namespace {

constexpr int kMaxCallDepth = 100;
constexpr size_t kMaxPrefixPart = 64;

using Renaming = absl::flat_hash_map<std::string, std::string>;

std::string Renamed(const Renaming& names, const std::string& value) {
  auto it = names.find(value);
  return it == names.end() ? value : it->second;
}

// Substitutes attribute references; false: the attribute disappears.
bool ResolveReference(const Node& call, const Function& function, Attribute* attribute) {
  if (attribute->ref.empty()) return true;
  auto it = call.attributes.find(attribute->ref);
  if (it != call.attributes.end()) {
    *attribute = it->second;
    return true;
  }
  auto fallback = function.default_attributes.find(attribute->ref);
  if (fallback == function.default_attributes.end()) return false;
  *attribute = fallback->second;
  return true;
}

Node CopyNode(const Node& node, const Function& function, const Node& call,
              const std::string& prefix, Renaming* names);

// A subgraph of a body: its own names get the prefix too, captured ones follow
// the renaming of the enclosing body.
std::shared_ptr<const Graph> CopySubgraph(const Graph& graph, const Function& function,
                                          const Node& call, const std::string& prefix,
                                          Renaming names) {
  auto copy = std::make_shared<Graph>();
  copy->name = graph.name;
  copy->opsets = graph.opsets;
  auto fresh = [&](const std::string& v) { return names[v] = absl::StrCat(prefix, v); };
  for (const NamedType& in : graph.inputs) copy->inputs.push_back({fresh(in.name), in.type});
  for (const auto& [name, tensor] : graph.initializers) copy->initializers[fresh(name)] = tensor;
  for (const Node& node : graph.nodes) {
    copy->nodes.push_back(CopyNode(node, function, call, prefix, &names));
  }
  for (const NamedType& out : graph.outputs) {
    copy->outputs.push_back({Renamed(names, out.name), out.type});
  }
  return copy;
}

Node CopyNode(const Node& node, const Function& function, const Node& call,
              const std::string& prefix, Renaming* names) {
  Node copy = node;
  for (std::string& v : copy.inputs) v = Renamed(*names, v);
  for (std::string& v : copy.outputs) {
    if (v.empty()) continue;
    auto [it, inserted] = names->try_emplace(v, absl::StrCat(prefix, v));
    v = it->second;
  }
  if (!copy.name.empty()) copy.name = absl::StrCat(prefix, copy.name);
  copy.origin = call.origin.empty() ? call.Describe() : call.origin;
  for (auto it = copy.attributes.begin(); it != copy.attributes.end();) {
    if (!ResolveReference(call, function, &it->second)) {
      it = copy.attributes.erase(it);
      continue;
    }
    if (auto* sub = std::get_if<std::shared_ptr<const Graph>>(&it->second.value)) {
      it->second.value = CopySubgraph(**sub, function, call, prefix, *names);
    }
    ++it;
  }
  return copy;
}

// What a copy of the node costs, in nodes: names and lists count by their length.
int64_t Weight(const Node& node) {
  size_t bytes = node.name.size() + node.op_type.size();
  for (const std::string& v : node.inputs) bytes += v.size();
  for (const std::string& v : node.outputs) bytes += v.size();
  for (const auto& [name, attribute] : node.attributes) {
    bytes += name.size();
    if (auto* text = std::get_if<std::string>(&attribute.value)) bytes += text->size();
    if (auto* ints = std::get_if<std::vector<int64_t>>(&attribute.value)) bytes += 8 * ints->size();
    if (auto* floats = std::get_if<std::vector<float>>(&attribute.value))
      bytes += 4 * floats->size();
    if (auto* texts = std::get_if<std::vector<std::string>>(&attribute.value)) {
      for (const std::string& t : *texts) bytes += sizeof t + t.size();
    }
  }
  return 1 + static_cast<int64_t>(bytes / 1024);
}

// A function sees its formal inputs and nothing else.
absl::Status CheckBody(const FunctionKey& key, const Function& function) {
  Graph body = function.body;
  std::erase_if(body.outputs, [](const NamedType& out) { return out.name.empty(); });
  absl::Status status = FindingsToStatus(Verify(body));
  return status.ok() ? status
                     : Annotate(status, absl::StrCat("function ", key.domain, ".", key.name));
}

class Inliner {
 public:
  Inliner(const Graph& root, const std::function<bool(const Node&, const Function&)>& keep)
      : root_(root), keep_(keep) {
    ReserveNames(root);
  }

  absl::StatusOr<Graph> Run() {
    ONWARD_RETURN_IF_ERROR(CheckBudget());
    Graph out = root_;
    out.functions.clear();
    ONWARD_ASSIGN_OR_RETURN(out.nodes, Expand(root_.nodes, 0));
    return out;
  }

 private:
  void ReserveNames(const Graph& graph) {
    for (const Node& node : graph.nodes) {
      names_.insert(node.outputs.begin(), node.outputs.end());
      for (const auto& [name, attribute] : node.attributes) {
        if (auto* sub = std::get_if<std::shared_ptr<const Graph>>(&attribute.value))
          ReserveNames(**sub);
      }
    }
  }

  static absl::Status TooDeep() {
    return absl::InvalidArgumentError("functions call each other more than 100 levels deep");
  }

  const Function* Callee(const Node& node) const {
    const FunctionKey key{node.domain, node.op_type, node.overload};
    auto it = root_.functions.find(key);
    if (it == root_.functions.end()) {
      // Overloads are rare; without one any function of that name serves.
      it = root_.functions.lower_bound({node.domain, node.op_type, ""});
      if (it == root_.functions.end() || it->first.domain != node.domain ||
          it->first.name != node.op_type) {
        return nullptr;
      }
    }
    return it->second.get();
  }

  // Totals per function, so that 2^22 calls cost 22 look-ups to refuse.
  absl::StatusOr<int64_t> Count(const std::vector<Node>& nodes, int depth) {
    if (depth > kMaxCallDepth) return TooDeep();
    int64_t total = 0;
    for (const Node& node : nodes) {
      total += Weight(node);
      for (const auto& [name, attribute] : node.attributes) {
        if (auto* sub = std::get_if<std::shared_ptr<const Graph>>(&attribute.value)) {
          ONWARD_ASSIGN_OR_RETURN(int64_t inner, Count((*sub)->nodes, depth + 1));
          total += inner;
        }
      }
      const Function* f = Callee(node);
      if (f != nullptr) {
        auto it = counts_.find(f);
        if (it == counts_.end()) {
          if (!active_.insert(f).second) {
            return absl::InvalidArgumentError(
                absl::StrCat("function ", node.domain, ".", node.op_type,
                             " calls itself (directly or through others); "
                             "ONNX functions may not be recursive"));
          }
          ONWARD_ASSIGN_OR_RETURN(int64_t inner, Count(f->body.nodes, depth + 1));
          active_.erase(f);
          it = counts_.emplace(f, inner).first;
        }
        total += it->second;
      }
      if (total > kMaxExpandedNodes) {
        return absl::ResourceExhaustedError(
            absl::StrCat("expanding the model's functions gives more than ", kMaxExpandedNodes,
                         " nodes, or as much text"));
      }
    }
    return total;
  }

  absl::Status CheckBudget() {
    for (const auto& [key, function] : root_.functions) {
      ONWARD_RETURN_IF_ERROR(CheckBody(key, *function));
      active_ = {function.get()};
      ONWARD_ASSIGN_OR_RETURN(int64_t n, Count(function->body.nodes, 0));
      counts_[function.get()] = n;
    }
    active_.clear();
    return Count(root_.nodes, 0).status();
  }

  absl::StatusOr<std::vector<Node>> Expand(const std::vector<Node>& nodes, int depth) {
    if (depth > kMaxCallDepth) return TooDeep();
    std::vector<Node> out;
    for (const Node& node : nodes) {
      Node copy = node;
      for (auto& [name, attribute] : copy.attributes) {
        if (auto* sub = std::get_if<std::shared_ptr<const Graph>>(&attribute.value)) {
          auto graph = std::make_shared<Graph>(**sub);
          ONWARD_ASSIGN_OR_RETURN(graph->nodes, Expand((*sub)->nodes, depth + 1));
          attribute.value = std::shared_ptr<const Graph>(std::move(graph));
        }
      }
      const Function* f = Callee(copy);
      if (f == nullptr || (keep_ && keep_(copy, *f))) {
        out.push_back(std::move(copy));
        continue;
      }
      ONWARD_ASSIGN_OR_RETURN(std::vector<Node> body, ExpandCall(*f, copy, FreshPrefix(copy)));
      ONWARD_ASSIGN_OR_RETURN(body, Expand(body, depth + 1));
      for (Node& n : body) out.push_back(std::move(n));
    }
    return out;
  }

  std::string FreshPrefix(const Node& call) {
    // Cut, so that names do not grow with every level.
    const std::string base =
        (call.outputs.empty() ? call.op_type : call.outputs[0]).substr(0, kMaxPrefixPart);
    const std::string op = call.op_type.substr(0, kMaxPrefixPart);
    std::string prefix;
    do {
      prefix = absl::StrCat(base, "__", op, next_++, "_");
    } while (!names_.insert(prefix).second);
    return prefix;
  }

  const Graph& root_;
  const std::function<bool(const Node&, const Function&)>& keep_;
  absl::flat_hash_set<std::string> names_;
  absl::flat_hash_map<const Function*, int64_t> counts_;
  absl::flat_hash_set<const Function*> active_;
  int next_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<Node>> ExpandCall(const Function& function, const Node& call,
                                             const std::string& prefix) {
  const Graph& body = function.body;
  if (call.inputs.size() > body.inputs.size() || call.outputs.size() > body.outputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        call.Describe(), ": called with ", call.inputs.size(), " inputs and ", call.outputs.size(),
        " outputs, but the function has ", body.inputs.size(), " and ", body.outputs.size()));
  }
  Renaming names;
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    names[body.inputs[i].name] = i < call.inputs.size() ? call.inputs[i] : "";
  }
  std::vector<Node> tail;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (call.outputs[i].empty()) continue;
    const std::string& formal = body.outputs[i].name;
    // An output that is an input, or that stands twice, needs a value of its own.
    if (!names.try_emplace(formal, call.outputs[i]).second) {
      Node identity;
      identity.op_type = "Identity";
      identity.inputs = {names[formal]};
      identity.outputs = {call.outputs[i]};
      tail.push_back(std::move(identity));
    }
  }
  std::vector<Node> nodes;
  for (const Node& node : body.nodes) {
    nodes.push_back(CopyNode(node, function, call, prefix, &names));
  }
  for (Node& node : tail) nodes.push_back(std::move(node));
  return nodes;
}

void ResolveAttributes(const Node& call, Function* function) {
  Renaming names;
  for (Node& node : function->body.nodes) node = CopyNode(node, *function, call, "", &names);
}

absl::StatusOr<Graph> InlineFunctions(
    const Graph& graph, const std::function<bool(const Node&, const Function&)>& keep) {
  if (graph.functions.empty()) return graph;
  return Inliner(graph, keep).Run();
}

}  // namespace onward
