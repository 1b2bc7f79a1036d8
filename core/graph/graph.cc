// SPDX-License-Identifier: Apache-2.0
#include "core/graph/graph.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/scope.h"

namespace onward {
namespace {

template <typename T>
const T* Get(const Attributes& attributes, std::string_view name) {
  auto it = attributes.find(std::string(name));
  return it == attributes.end() ? nullptr : std::get_if<T>(&it->second.value);
}

template <typename T>
T GetOr(const Attributes& attributes, std::string_view name, T otherwise) {
  const T* v = Get<T>(attributes, name);
  return v == nullptr ? otherwise : *v;
}

void AppendCaptured(const Graph& graph, const Scope* outer, absl::flat_hash_set<std::string>* found,
                    std::vector<std::string>* captured) {
  Scope scope{{}, outer};
  for (const NamedType& in : graph.inputs) scope.names.insert(in.name);
  for (const auto& [name, tensor] : graph.initializers) scope.names.insert(name);
  auto use = [&](const std::string& v) {
    if (!v.empty() && !scope.Has(v) && found->insert(v).second) captured->push_back(v);
  };
  for (const Node& node : graph.nodes) {
    for (const std::string& v : node.inputs) use(v);
    ForEachBody(node, [&](const std::string&, const Graph& body) {
      AppendCaptured(body, &scope, found, captured);
    });
    scope.names.insert(node.outputs.begin(), node.outputs.end());
  }
  for (const NamedType& out : graph.outputs) use(out.name);
}

}  // namespace

bool Node::Has(std::string_view attribute) const {
  return attributes.contains(std::string(attribute));
}
int64_t Node::Int(std::string_view attribute, int64_t otherwise) const {
  return GetOr<int64_t>(attributes, attribute, otherwise);
}
float Node::Float(std::string_view attribute, float otherwise) const {
  return GetOr<float>(attributes, attribute, otherwise);
}
std::string Node::String(std::string_view attribute, std::string_view otherwise) const {
  return GetOr<std::string>(attributes, attribute, std::string(otherwise));
}
std::vector<int64_t> Node::Ints(std::string_view attribute, std::vector<int64_t> otherwise) const {
  return GetOr<std::vector<int64_t>>(attributes, attribute, std::move(otherwise));
}
std::vector<std::string> Node::Strings(std::string_view attribute) const {
  return GetOr<std::vector<std::string>>(attributes, attribute, {});
}
const Tensor* Node::TensorAttribute(std::string_view attribute) const {
  return Get<Tensor>(attributes, attribute);
}
const Graph* Node::Subgraph(std::string_view attribute) const {
  const auto* g = Get<Attribute::Body>(attributes, attribute);
  return g == nullptr ? nullptr : g->get();
}

std::string Node::Describe() const {
  std::string label = name;
  if (label.empty()) {
    for (const std::string& out : outputs) {
      if (!out.empty()) {
        label = absl::StrCat("-> ", out);
        break;
      }
    }
  }
  std::string text =
      absl::StrCat("node '", label, "' (", domain.empty() ? "" : domain + ".", op_type, ")");
  if (!origin.empty()) absl::StrAppend(&text, " of ", origin);
  return text;
}

std::string Graph::ValueMetadata(const std::string& value, const std::string& key) const {
  auto entries = metadata.find(value);
  if (entries == metadata.end()) return "";
  auto entry = entries->second.find(key);
  return entry == entries->second.end() ? "" : entry->second;
}

bool Graph::IsInput(std::string_view value) const {
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const NamedType& t) { return t.name == value; });
}

bool Graph::IsOutput(std::string_view value) const {
  return std::any_of(outputs.begin(), outputs.end(),
                     [&](const NamedType& t) { return t.name == value; });
}

std::vector<NamedType> Graph::FeedInputs() const {
  std::vector<NamedType> feeds;
  for (const NamedType& in : inputs) {
    if (!initializers.contains(in.name)) feeds.push_back(in);
  }
  return feeds;
}

void ImportDomain(const std::string& domain, Graph* graph) {
  if (domain.empty()) return;
  graph->opsets.try_emplace(domain, domain == kOnwardDomain ? kOnwardVersion : 1);
}

void ForEachBody(const Node& node,
                 absl::FunctionRef<void(const std::string&, const Graph&)> visit) {
  for (const auto& [name, attribute] : node.attributes) {
    if (auto* body = std::get_if<Attribute::Body>(&attribute.value)) {
      if (*body != nullptr) visit(name, **body);
    } else if (auto* bodies = std::get_if<std::vector<Attribute::Body>>(&attribute.value)) {
      for (const Attribute::Body& b : *bodies) visit(name, *b);
    }
  }
}

absl::Status ChangeBodies(absl::FunctionRef<absl::StatusOr<Graph>(const Graph&)> change,
                          Attribute* attribute) {
  const auto replace = [&](Attribute::Body& body) {
    if (body == nullptr) return absl::OkStatus();
    ONWARD_ASSIGN_OR_RETURN(Graph changed, change(*body));
    body = std::make_shared<const Graph>(std::move(changed));
    return absl::OkStatus();
  };
  if (auto* body = std::get_if<Attribute::Body>(&attribute->value)) return replace(*body);
  if (auto* bodies = std::get_if<std::vector<Attribute::Body>>(&attribute->value)) {
    for (Attribute::Body& body : *bodies) ONWARD_RETURN_IF_ERROR(replace(body));
  }
  return absl::OkStatus();
}

absl::Status ChangeBodies(absl::FunctionRef<absl::StatusOr<Graph>(const Graph&)> change,
                          Node* node) {
  for (auto& [name, attribute] : node->attributes) {
    ONWARD_RETURN_IF_ERROR(ChangeBodies(change, &attribute));
  }
  return absl::OkStatus();
}

std::vector<std::string> CapturedValues(const Graph& graph) {
  std::vector<std::string> captured;
  absl::flat_hash_set<std::string> found;
  AppendCaptured(graph, nullptr, &found, &captured);
  return captured;
}

std::vector<std::string> AllInputs(const Node& node) {
  std::vector<std::string> all;
  for (const std::string& v : node.inputs) {
    if (!v.empty()) all.push_back(v);
  }
  ForEachBody(node, [&](const std::string&, const Graph& body) {
    for (std::string& v : CapturedValues(body)) all.push_back(std::move(v));
  });
  return all;
}

}  // namespace onward
