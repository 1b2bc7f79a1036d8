// SPDX-License-Identifier: Apache-2.0
// Checks of a graph against the operator schemas.
#include <exception>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/constraints/constraints.h"
#include "core/onnx_io/model.h"
#include "core/onnx_io/proto.h"
#include "onnx/defs/schema.h"

namespace onward {
namespace {

// Domains whose operators are all known to the onnx library.
bool IsStandardDomain(const std::string& domain) {
  return domain.empty() || domain == "ai.onnx.ml" || domain == kTrainingDomain ||
         domain == "ai.onnx.preview";
}

// Leaves tensors out: their values do not matter to a schema.
onnx::NodeProto LightProto(const Node& node) {
  Node light = node;
  for (auto& [name, attribute] : light.attributes) {
    if (std::holds_alternative<Tensor>(attribute.value)) attribute.value = Tensor::Scalar<float>(0);
    ChangeBodies([](const Graph&) { return Graph(); }, &attribute).IgnoreError();
  }
  onnx::NodeProto proto;
  NodeToProto(light, &proto);
  return proto;
}

// Withdrawn operators that files have, and that are read (RaiseOpset knows what they mean): the
// schema of what came after them, which says what is valid. Null for others.
const onnx::OpSchema* HeirOf(const Node& withdrawn, int opset, onnx::NodeProto* proto) {
  constexpr int kResizeOpset = 10, kScalesOfChannelsOpset = 21;
  if (withdrawn.Is("GroupNormalization")) {
    return onnx::OpSchemaRegistry::Schema("GroupNormalization", kScalesOfChannelsOpset, "");
  }
  if (withdrawn.Is("Upsample") && opset == kResizeOpset) {
    proto->set_op_type("Resize");
    return onnx::OpSchemaRegistry::Schema("Resize", kResizeOpset, "");
  }
  return nullptr;
}

void CheckNode(const Node& node, const std::map<std::string, int>& opsets, const Place& place,
               std::vector<Finding>* findings) {
  if (node.domain == "com.microsoft.training" || !IsStandardDomain(node.domain)) return;
  auto it = opsets.find(node.domain);
  if (it == opsets.end()) {
    AddFinding("no-opset", place,
               absl::StrCat("the model imports no operator set for domain '", node.domain, "'"),
               "add it to opset_import", findings);
    return;
  }
  const onnx::OpSchema* schema =
      onnx::OpSchemaRegistry::Schema(node.op_type, it->second, node.domain);
  const bool withdrawn = schema != nullptr && schema->deprecated();
  onnx::NodeProto proto = LightProto(node);
  if (withdrawn) schema = HeirOf(node, it->second, &proto);
  if (schema == nullptr) {
    AddFinding(
        "unknown-operator", place,
        absl::StrCat(withdrawn ? "the standard has withdrawn operator " : "there is no operator ",
                     node.op_type, " in domain '", node.domain, "' at version ", it->second),
        withdrawn ? "write the model with an opset that has it, or its successor"
                  : "check name, domain and opset_import",
        findings);
    return;
  }
  for (const auto& [name, attribute] : node.attributes) {
    if (attribute.ref.empty()) continue;
    AddFinding("stray-reference", place,
               absl::StrCat("attribute '", name, "' refers to '", attribute.ref,
                            "' of a call, but the node is in no function"),
               "give the attribute a value", findings);
  }
  try {
    schema->Verify(proto);
  } catch (const std::exception& e) {
    AddFinding("bad-node", place, e.what(), "see the operator's specification", findings);
  }
}

// What nodes of a body break whatever the types are; CheckTypes sees the others.
void CheckBodyNode(const Node& node, const std::map<std::string, int>& opsets, const Place& place,
                   std::vector<Finding>* findings) {
  auto it = opsets.find(node.domain);
  const onnx::OpSchema* schema =
      it == opsets.end() ? nullptr
                         : onnx::OpSchemaRegistry::Schema(node.op_type, it->second, node.domain);
  if (schema == nullptr) return;
  for (std::string& what : BrokenConstraints(node, {}, schema->since_version())) {
    AddFinding("bad-node", place, std::move(what), kMendNode, findings);
  }
}

void CheckNodes(const Graph& graph, const std::map<std::string, int>& opsets, bool in_body,
                const Place& where, std::vector<Finding>* findings) {
  for (const Node& node : graph.nodes) {
    const Place place = [&] { return absl::StrCat(where(), ", ", node.Describe()); };
    CheckNode(node, opsets, place, findings);
    if (in_body) CheckBodyNode(node, opsets, place, findings);
    ForEachBody(node, [&](const std::string& name, const Graph& body) {
      CheckNodes(
          body, opsets, true, [&] { return absl::StrCat(place(), " ", name); }, findings);
    });
  }
}

}  // namespace

std::vector<Finding> CheckGraph(const Graph& graph) {
  std::vector<Finding> findings = Verify(graph);
  CheckNodes(
      graph, graph.opsets, false, [] { return std::string("graph"); }, &findings);
  return findings;
}

}  // namespace onward
