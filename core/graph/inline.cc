// SPDX-License-Identifier: Apache-2.0
#include "core/graph/inline.h"

#include <algorithm>
#include <map>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/expansion_cost.h"
#include "core/graph/rename.h"
#include "core/graph/verify.h"

namespace onward {
namespace {

constexpr int kMaxCallDepth = 100;
// Deeper graphs could not be read from a file either.
constexpr int kMaxNesting = 32;
constexpr size_t kMaxPrefixPart = 64;
constexpr size_t kBytesOfNode = 1024;

bool IsGradient(const Node& node) { return node.Is("Gradient", kTrainingDomain); }

bool HoldsGradient(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    bool holds = IsGradient(node);
    ForEachBody(
        node, [&](const std::string&, const Graph& body) { holds = holds || HoldsGradient(body); });
    return holds;
  });
}

// Copies the nodes of a function's body to where it is called.
class BodyCopy {
 public:
  // `names` null: values keep theirs.
  BodyCopy(const Function& function, const Node& call, const std::string& prefix, NameScope* names)
      : function_(function), call_(call), prefix_(prefix), names_(names) {}

  Node Copy(const Node& node, Renaming* renaming) const {
    Node copy = node;
    for (std::string& v : copy.inputs) v = Renamed(*renaming, v);
    for (std::string& v : copy.outputs) {
      if (!v.empty()) v = Define(v, renaming);
    }
    if (!copy.name.empty()) copy.name = absl::StrCat(prefix_, copy.name);
    if (!call_.op_type.empty()) {
      copy.origin = call_.origin.empty() ? call_.Describe() : call_.origin;
    }
    for (auto it = copy.attributes.begin(); it != copy.attributes.end();) {
      if (it->second.ref.empty()) {
        ChangeBodies([&](const Graph& body) { return CopyBody(body, *renaming); }, &it->second)
            .IgnoreError();
        ++it;
      } else if (const Attribute* value = Referenced(it->second.ref)) {
        // A body that the caller hands over speaks of the caller's values.
        it->second = *value;
        ++it;
      } else {
        it = copy.attributes.erase(it);
      }
    }
    RenameNamed(*renaming, &copy);
    return copy;
  }

  // A Gradient node may stand before what it names.
  void DefineAhead(const Graph& graph, Renaming* renaming) const {
    if (!std::any_of(graph.nodes.begin(), graph.nodes.end(), IsGradient)) return;
    for (const Node& node : graph.nodes) {
      for (const std::string& v : node.outputs) {
        if (!v.empty()) Define(v, renaming);
      }
    }
  }

  // What the body defines gets names of its own; what it captures follows the renaming
  // around it.
  Graph CopyBody(const Graph& graph, Renaming renaming) const {
    Graph copy;
    copy.name = graph.name;
    copy.opsets = graph.opsets;
    const auto define = [&](const std::string& value) {
      renaming.erase(value);
      return Define(value, &renaming);
    };
    for (const NamedType& in : graph.inputs) copy.inputs.push_back({define(in.name), in.type});
    for (const auto& [name, tensor] : graph.initializers) {
      // An initializer may be the default of an input of the same name.
      const bool is_input = graph.IsInput(name);
      copy.initializers[is_input ? Renamed(renaming, name) : define(name)] = tensor;
    }
    DefineAhead(graph, &renaming);
    for (const Node& node : graph.nodes) copy.nodes.push_back(Copy(node, &renaming));
    for (const NamedType& out : graph.outputs) {
      copy.outputs.push_back({Renamed(renaming, out.name), out.type});
    }
    return copy;
  }

 private:
  // The caller's attribute, else the function's default, else null.
  const Attribute* Referenced(const std::string& name) const {
    if (auto it = call_.attributes.find(name); it != call_.attributes.end()) return &it->second;
    auto it = function_.default_attributes.find(name);
    return it == function_.default_attributes.end() ? nullptr : &it->second;
  }

  std::string Define(const std::string& value, Renaming* renaming) const {
    if (auto it = renaming->find(value); it != renaming->end()) return it->second;
    const std::string fresh =
        names_ == nullptr ? value : names_->Unique(absl::StrCat(prefix_, value));
    renaming->emplace(value, fresh);
    return fresh;
  }

  const Function& function_;
  const Node& call_;
  const std::string prefix_;
  NameScope* const names_;
};

size_t Bytes(const Attribute& attribute) {
  if (auto* text = std::get_if<std::string>(&attribute.value)) return text->size();
  if (auto* ints = std::get_if<std::vector<int64_t>>(&attribute.value)) return 8 * ints->size();
  if (auto* floats = std::get_if<std::vector<float>>(&attribute.value)) return 4 * floats->size();
  size_t bytes = 0;
  if (auto* texts = std::get_if<std::vector<std::string>>(&attribute.value)) {
    for (const std::string& t : *texts) bytes += sizeof t + t.size();
  }
  return bytes;
}

// What a copy of the node costs, in nodes: names and lists count by their length.
int64_t Weight(const Node& node) {
  size_t bytes = node.name.size() + node.op_type.size();
  for (const std::string& v : node.inputs) bytes += v.size();
  for (const std::string& v : node.outputs) bytes += v.size();
  for (const auto& [name, attribute] : node.attributes) bytes += name.size() + Bytes(attribute);
  return 1 + static_cast<int64_t>(bytes / kBytesOfNode);
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
    names_.Reserve(root);
  }

  absl::StatusOr<Graph> Run() {
    ONWARD_RETURN_IF_ERROR(CheckBudget());
    Graph out = root_;
    out.functions.clear();
    ONWARD_ASSIGN_OR_RETURN(out.nodes, Expand(root_.nodes, 0));
    return out;
  }

 private:
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

  // Cost of nodes, their graphs and what they call, reckoned once per function, so that
  // 2^22 calls cost 22 look-ups to refuse.
  absl::StatusOr<ExpansionCost> Count(const std::vector<Node>& nodes, int depth) {
    if (depth > kMaxCallDepth) return TooDeep();
    ExpansionCost total;
    for (const Node& node : nodes) {
      total.Add(ExpansionCost::OfNodes(Weight(node)));
      std::map<std::string, ExpansionCost> arguments;
      for (const auto& [name, attribute] : node.attributes) {
        ONWARD_ASSIGN_OR_RETURN(ExpansionCost cost, CountAttribute(attribute, depth));
        if (IsCopied(attribute)) total.Add(cost);  // the others are in the node's weight
        arguments.emplace(name, std::move(cost));
      }
      if (const Function* f = Callee(node)) {
        ONWARD_RETURN_IF_ERROR(CountFunction(node, *f, depth));
        for (const auto& [name, attribute] : f->default_attributes) {
          if (arguments.contains(name)) continue;
          ONWARD_ASSIGN_OR_RETURN(ExpansionCost cost, CountAttribute(attribute, depth));
          arguments.emplace(name, std::move(cost));
        }
        total.Add(costs_.at(f).Called(arguments));
      }
      ONWARD_RETURN_IF_ERROR(CheckCost(total));
    }
    return total;
  }

  static bool IsCopied(const Attribute& attribute) {
    return !attribute.ref.empty() || std::holds_alternative<Attribute::Body>(attribute.value) ||
           std::holds_alternative<std::vector<Attribute::Body>>(attribute.value);
  }

  absl::StatusOr<ExpansionCost> CountAttribute(const Attribute& attribute, int depth) {
    if (!attribute.ref.empty()) return ExpansionCost::OfReference(attribute.ref);
    std::vector<Attribute::Body> bodies;
    if (auto* one = std::get_if<Attribute::Body>(&attribute.value)) bodies = {*one};
    if (auto* list = std::get_if<std::vector<Attribute::Body>>(&attribute.value)) bodies = *list;
    if (bodies.empty()) return ExpansionCost::OfNodes(Bytes(attribute) / kBytesOfNode);
    ExpansionCost total;
    for (const Attribute::Body& body : bodies) {
      ONWARD_ASSIGN_OR_RETURN(ExpansionCost inner, Count(body->nodes, depth + 1));
      total.Add(inner.Nested());
    }
    return total;
  }

  absl::Status CountFunction(const Node& call, const Function& f, int depth) {
    if (costs_.contains(&f)) return absl::OkStatus();
    if (!active_.insert(&f).second) {
      return absl::InvalidArgumentError(absl::StrCat("function ", call.domain, ".", call.op_type,
                                                     " calls itself (directly or through others); "
                                                     "ONNX functions may not be recursive"));
    }
    ONWARD_ASSIGN_OR_RETURN(ExpansionCost cost, Count(f.body.nodes, depth + 1));
    active_.erase(&f);
    costs_.emplace(&f, std::move(cost));
    return absl::OkStatus();
  }

  static absl::Status CheckCost(const ExpansionCost& cost) {
    if (cost.nodes() > kMaxExpandedNodes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("expanding the model's functions gives more than ", kMaxExpandedNodes,
                       " nodes, or as much text; call fewer functions, or hand on smaller graphs"));
    }
    if (cost.nesting() > kMaxNesting) {
      return absl::ResourceExhaustedError(
          absl::StrCat("expanding the model's functions nests graphs more than ", kMaxNesting,
                       " deep; hand fewer graphs from function to function"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckBudget() {
    for (const auto& [key, function] : root_.functions) {
      ONWARD_RETURN_IF_ERROR(CheckBody(key, *function));
      active_ = {function.get()};
      ONWARD_ASSIGN_OR_RETURN(ExpansionCost cost, Count(function->body.nodes, 0));
      costs_.insert_or_assign(function.get(), std::move(cost));
    }
    active_.clear();
    return Count(root_.nodes, 0).status();
  }

  absl::StatusOr<std::vector<Node>> Expand(const std::vector<Node>& nodes, int depth) {
    if (depth > kMaxCallDepth) return TooDeep();
    std::vector<Node> out;
    for (const Node& node : nodes) {
      Node copy = node;
      const auto expand = [&](const Graph& body) -> absl::StatusOr<Graph> {
        Graph expanded = body;
        ONWARD_ASSIGN_OR_RETURN(expanded.nodes, Expand(body.nodes, depth + 1));
        return expanded;
      };
      ONWARD_RETURN_IF_ERROR(ChangeBodies(expand, &copy));
      const Function* f = Callee(copy);
      if (f == nullptr || (keep_ && keep_(copy, *f))) {
        out.push_back(std::move(copy));
        continue;
      }
      ONWARD_ASSIGN_OR_RETURN(std::vector<Node> body, ExpandCall(*f, copy, Prefix(copy), &names_));
      ONWARD_ASSIGN_OR_RETURN(body, Expand(body, depth + 1));
      for (Node& n : body) out.push_back(std::move(n));
    }
    return out;
  }

  std::string Prefix(const Node& call) {
    // Cut, so that names do not grow with every level.
    const std::string base =
        (call.outputs.empty() ? call.op_type : call.outputs[0]).substr(0, kMaxPrefixPart);
    return absl::StrCat(base, "__", call.op_type.substr(0, kMaxPrefixPart), next_++, "_");
  }

  const Graph& root_;
  const std::function<bool(const Node&, const Function&)>& keep_;
  NameScope names_;
  absl::flat_hash_map<const Function*, ExpansionCost> costs_;
  absl::flat_hash_set<const Function*> active_;
  int next_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<Node>> ExpandCall(const Function& function, const Node& call,
                                             const std::string& prefix, NameScope* names) {
  const Graph& body = function.body;
  if (call.inputs.size() > body.inputs.size() || call.outputs.size() > body.outputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        call.Describe(), ": called with ", call.inputs.size(), " inputs and ", call.outputs.size(),
        " outputs, but the function has ", body.inputs.size(), " and ", body.outputs.size()));
  }
  Renaming renaming;
  std::vector<Node> nodes, tail;
  // A Gradient node of a function differentiates by its parameters and not by what the caller
  // made them of: two arguments may depend on each other, parameters do not.
  const bool own_values = names != nullptr && HoldsGradient(body);
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    std::string& actual = renaming[body.inputs[i].name];
    actual = i < call.inputs.size() ? call.inputs[i] : "";
    if (!own_values || actual.empty()) continue;
    Node identity;
    identity.op_type = "Identity";
    identity.inputs = {actual};
    actual = names->Unique(absl::StrCat(prefix, body.inputs[i].name));
    identity.outputs = {actual};
    nodes.push_back(std::move(identity));
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (call.outputs[i].empty()) continue;
    const std::string& formal = body.outputs[i].name;
    // An output that is an input, or that stands twice, needs a value of its own.
    if (!renaming.try_emplace(formal, call.outputs[i]).second) {
      Node identity;
      identity.op_type = "Identity";
      identity.inputs = {renaming[formal]};
      identity.outputs = {call.outputs[i]};
      tail.push_back(std::move(identity));
    }
  }
  const BodyCopy copy(function, call, prefix, names);
  copy.DefineAhead(body, &renaming);
  for (const Node& node : body.nodes) nodes.push_back(copy.Copy(node, &renaming));
  for (Node& node : tail) nodes.push_back(std::move(node));
  return nodes;
}

absl::StatusOr<std::vector<Node>> ExpandBranch(const Node& node, bool condition,
                                               const std::string& prefix, NameScope* names) {
  const char* which = condition ? "then_branch" : "else_branch";
  const Graph* branch = node.Subgraph(which);
  if (branch == nullptr || branch->outputs.size() != node.outputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(node.Describe(), ": ", which, " has ",
                                                   branch == nullptr ? 0 : branch->outputs.size(),
                                                   " outputs, the node ", node.outputs.size()));
  }
  // A function without inputs: what the branch captures keeps its name.
  Function function;
  for (const auto& [name, tensor] : branch->initializers) {
    Node constant;
    constant.op_type = "Constant";
    constant.outputs = {name};
    constant.attributes["value"] = tensor;
    function.body.nodes.push_back(std::move(constant));
  }
  function.body.nodes.insert(function.body.nodes.end(), branch->nodes.begin(), branch->nodes.end());
  absl::flat_hash_set<std::string> defined;
  for (const Node& n : function.body.nodes) defined.insert(n.outputs.begin(), n.outputs.end());
  Node call = node;
  call.inputs.clear();
  call.attributes.clear();
  std::vector<Node> captured;
  for (size_t i = 0; i < branch->outputs.size(); ++i) {
    function.body.outputs.push_back(branch->outputs[i]);
    const std::string& name = branch->outputs[i].name;
    if (defined.contains(name) || call.outputs[i].empty()) continue;
    Node identity;
    identity.op_type = "Identity";
    identity.inputs = {name};
    identity.outputs = {call.outputs[i]};
    captured.push_back(std::move(identity));
    call.outputs[i].clear();
  }
  ONWARD_ASSIGN_OR_RETURN(std::vector<Node> nodes, ExpandCall(function, call, prefix, names));
  nodes.insert(nodes.end(), captured.begin(), captured.end());
  return nodes;
}

Graph CopyBody(const Graph& body, const std::string& prefix, NameScope* names) {
  const Function none;
  const Node no_call;
  return BodyCopy(none, no_call, prefix, names).CopyBody(body, {});
}

void ResolveAttributes(const Node& call, Function* function) {
  Renaming renaming;
  const BodyCopy copy(*function, call, "", nullptr);
  for (Node& node : function->body.nodes) node = copy.Copy(node, &renaming);
}

absl::StatusOr<Graph> InlineFunctions(
    const Graph& graph, const std::function<bool(const Node&, const Function&)>& keep) {
  if (graph.functions.empty()) return graph;
  return Inliner(graph, keep).Run();
}

}  // namespace onward
