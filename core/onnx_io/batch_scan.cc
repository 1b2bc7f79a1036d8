// SPDX-License-Identifier: Apache-2.0
#include "core/onnx_io/batch_scan.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace onward {
namespace {

constexpr char kBatchDomain[] = "ai.onward.batch";

Node MakeNode(const std::string& op, std::vector<std::string> inputs,
              std::vector<std::string> outputs, Attributes attributes = {}) {
  Node node;
  node.op_type = op;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  node.attributes = std::move(attributes);
  return node;
}

// Writes the nodes that stand for one Scan of opset 8.
class Expansion {
 public:
  Expansion(const Node& scan, NameScope* names) : scan_(scan), names_(names) {
    prefix_ = absl::StrCat(scan.outputs.empty() ? "scan" : scan.outputs[0], "__batch_");
  }

  absl::StatusOr<std::vector<Node>> Run() {
    const Graph* body = scan_.Subgraph("body");
    const int64_t scans = scan_.Int("num_scan_inputs", 0);
    const int64_t given = static_cast<int64_t>(scan_.inputs.size()) - 1;
    if (body == nullptr || scans < 1 || scans > given) {
      return absl::InvalidArgumentError(absl::StrCat(scan_.Describe(), ": num_scan_inputs ", scans,
                                                     " of ", given, " inputs, or no body"));
    }
    const int64_t states = given - scans;
    const std::string last = scan_.inputs.back(), zero = Number(0);
    const std::string shape = Add(&before_, "Shape", {last});
    const std::string batch = Add(&before_, "Gather", {shape, zero}, {{"axis", Attribute(0)}});
    Graph each;
    each.name = Name("each");
    each.inputs = {{Name("index"), ValueType::Of(DType::kInt64, {})},
                   {Name("going"), ValueType::Of(DType::kBool, {})}};
    const std::string index = each.inputs[0].name;
    std::string length;  // of this sequence, as a vector of one
    if (scan_.HasInput(0)) {
      const std::string axes = List(&each.nodes, {0});
      length = Add(
          &each.nodes, "Unsqueeze",
          {Add(&each.nodes, "Gather", {scan_.inputs[0], index}, {{"axis", Attribute(0)}}), axes});
    }
    std::vector<std::string> inner;
    for (int64_t k = 0; k < given; ++k) {
      std::string value =
          Add(&each.nodes, "Gather", {scan_.inputs[1 + k], index}, {{"axis", Attribute(0)}});
      if (k >= states && !length.empty()) {
        value = Add(&each.nodes, "Slice",
                    {value, List(&each.nodes, {0}), length, List(&each.nodes, {0})});
      }
      inner.push_back(std::move(value));
    }
    std::vector<std::string> results;
    for (size_t k = 0; k < scan_.outputs.size(); ++k) results.push_back(Name("result"));
    Attributes attributes = {{"num_scan_inputs", Attribute(scans)},
                             {"body", scan_.attributes.at("body")}};
    if (scan_.Has("directions")) {
      attributes["scan_input_directions"] = scan_.attributes.at("directions");
    }
    each.nodes.push_back(MakeNode("Scan", inner, results, std::move(attributes)));
    each.outputs.push_back({Add(&each.nodes, "Identity", {each.inputs[1].name}), {}});
    for (size_t k = 0; k < results.size(); ++k) {
      std::string value = results[k];
      if (static_cast<int64_t>(k) >= states && !length.empty()) {
        value = Padded(&each.nodes, value, shape, length);
      }
      each.outputs.push_back({value, {}});
    }
    before_.push_back(MakeNode("Loop", {batch, ""}, scan_.outputs,
                               {{"body", Attribute(std::make_shared<const Graph>(each))}}));
    return std::move(before_);
  }

 private:
  std::string Name(const std::string& what) { return names_->Unique(prefix_ + what); }

  std::string Add(std::vector<Node>* nodes, const std::string& op, std::vector<std::string> inputs,
                  Attributes attributes = {}) {
    const std::string out = Name(op);
    nodes->push_back(MakeNode(op, std::move(inputs), {out}, std::move(attributes)));
    return out;
  }
  std::string Number(int64_t value) {
    return Add(&before_, "Constant", {}, {{"value", Attribute(Tensor::Scalar<int64_t>(value))}});
  }
  std::string List(std::vector<Node>* nodes, std::initializer_list<int64_t> values) {
    const Shape shape{static_cast<int64_t>(values.size())};
    return Add(nodes, "Constant", {},
               {{"value", Attribute(Tensor::FromValues<int64_t>(shape, values))}});
  }

  // Zeros behind the last step, up to the longest sequence.
  std::string Padded(std::vector<Node>* nodes, const std::string& value, const std::string& shape,
                     const std::string& length) {
    const std::string longest =
        Add(nodes, "Gather", {shape, List(nodes, {1})}, {{"axis", Attribute(0)}});
    const std::string missing = Add(nodes, "Sub", {longest, length});
    const std::string pads =
        Add(nodes, "Concat", {List(nodes, {0}), missing}, {{"axis", Attribute(0)}});
    return Add(nodes, "Pad", {value, pads, "", List(nodes, {0})});
  }

  const Node& scan_;
  NameScope* names_;
  std::string prefix_;
  std::vector<Node> before_;
};

}  // namespace

void DisguiseBatchScans(Graph* graph) {
  for (Node& node : graph->nodes) {
    if (node.Is("Scan")) node.domain = kBatchDomain;
    ChangeBodies(
        [](const Graph& body) -> absl::StatusOr<Graph> {
          Graph changed = body;
          DisguiseBatchScans(&changed);
          return changed;
        },
        &node)
        .IgnoreError();
  }
  graph->opsets[kBatchDomain] = 1;
}

absl::Status ExpandBatchScans(NameScope* names, Graph* graph) {
  std::vector<Node> nodes;
  for (Node& node : graph->nodes) {
    ONWARD_RETURN_IF_ERROR(ChangeBodies(
        [&](const Graph& body) -> absl::StatusOr<Graph> {
          Graph changed = body;
          ONWARD_RETURN_IF_ERROR(ExpandBatchScans(names, &changed));
          return changed;
        },
        &node));
    if (!node.Is("Scan", kBatchDomain)) {
      nodes.push_back(std::move(node));
      continue;
    }
    ONWARD_ASSIGN_OR_RETURN(std::vector<Node> expanded, Expansion(node, names).Run());
    nodes.insert(nodes.end(), std::make_move_iterator(expanded.begin()),
                 std::make_move_iterator(expanded.end()));
  }
  graph->nodes = std::move(nodes);
  graph->opsets.erase(kBatchDomain);
  return absl::OkStatus();
}

}  // namespace onward
