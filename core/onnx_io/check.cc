// SPDX-License-Identifier: Apache-2.0
// Checks of a graph against the operator schemas.
#include <exception>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
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
  if (schema == nullptr || schema->deprecated()) {
    AddFinding("unknown-operator", place,
               absl::StrCat("there is no operator ", node.op_type, " in domain '", node.domain,
                            "' at version ", it->second),
               "check name, domain and opset_import", findings);
    return;
  }
  try {
    schema->Verify(LightProto(node));
  } catch (const std::exception& e) {
    AddFinding("bad-node", place, e.what(), "see the operator's specification", findings);
  }
}

void CheckNodes(const Graph& graph, const std::map<std::string, int>& opsets, const Place& where,
                std::vector<Finding>* findings) {
  for (const Node& node : graph.nodes) {
    const Place place = [&] { return absl::StrCat(where(), ", ", node.Describe()); };
    CheckNode(node, opsets, place, findings);
    ForEachBody(node, [&](const std::string& name, const Graph& body) {
      CheckNodes(
          body, opsets, [&] { return absl::StrCat(place(), " ", name); }, findings);
    });
  }
}

}  // namespace

std::vector<Finding> CheckGraph(const Graph& graph) {
  std::vector<Finding> findings = Verify(graph);
  CheckNodes(
      graph, graph.opsets, [] { return std::string("graph"); }, &findings);
  return findings;
}

}  // namespace onward
