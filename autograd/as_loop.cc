// SPDX-License-Identifier: Apache-2.0
#include "autograd/as_loop.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/inline.h"

namespace onward {
namespace {

constexpr int64_t kFromLast = 1;

// With states v, scanned x and s, captured c:
//
//   v, s = Scan (v, x) { v, s[t] = f(v, x[t], c) }
//   v, s = Loop (n, , v) { v, s[i] = f(v, Gather(x, i), c) }
class ScanRewriter {
 public:
  ScanRewriter(const Node& scan, const Graph& body, GraphBuilder& b)
      : scan_(scan), b_(b), body_(body) {}

  absl::StatusOr<std::vector<Node>> Run() {
    std::erase_if(body_.inputs,
                  [&](const NamedType& in) { return body_.initializers.contains(in.name); });
    const int64_t scanned = scan_.Int("num_scan_inputs", 0);
    states_ = static_cast<int64_t>(scan_.inputs.size()) - scanned;
    if (scanned < 1 || states_ < 0 || body_.inputs.size() != scan_.inputs.size() ||
        body_.outputs.size() < scan_.outputs.size() ||
        body_.outputs.size() < static_cast<size_t>(states_)) {
      return absl::InvalidArgumentError(
          absl::StrCat("has ", scan_.inputs.size(), " inputs and ", scan_.outputs.size(),
                       " outputs, its body ", body_.inputs.size(), " and ", body_.outputs.size()));
    }
    CountIterations();
    OpenBody();
    Node loop;
    loop.op_type = "Loop";
    loop.name = scan_.name;
    loop.origin = scan_.origin;
    loop.inputs = {count_, ""};
    loop.inputs.insert(loop.inputs.end(), scan_.inputs.begin(), scan_.inputs.begin() + states_);
    loop.outputs = scan_.outputs;
    ONWARD_ASSIGN_OR_RETURN(std::vector<Node> after, MoveOutputs(&loop.outputs));
    loop.attributes["body"] = std::make_shared<const Graph>(std::move(body_));
    nodes_.push_back(std::move(loop));
    for (Node& node : after) nodes_.push_back(std::move(node));
    return std::move(nodes_);
  }

 private:
  int64_t Way(const char* attribute, int64_t i) const {
    const std::vector<int64_t> ways = scan_.Ints(attribute);
    return i < static_cast<int64_t>(ways.size()) ? ways[i] : 0;
  }

  std::string Add(std::vector<Node>* to, const char* op, std::vector<std::string> inputs,
                  Attributes attributes = {}, std::string output = "") {
    Node node;
    node.op_type = op;
    node.inputs = std::move(inputs);
    node.outputs = {output.empty() ? b_.UniqueName("scan") : std::move(output)};
    node.attributes = std::move(attributes);
    to->push_back(std::move(node));
    return to->back().outputs[0];
  }
  std::string Constant(const Tensor& value) {
    return Add(&nodes_, "Constant", {}, {{"value", value}});
  }

  void CountIterations() {
    const std::string axis = Constant(Tensor::Scalar<int64_t>(Way("scan_input_axes", 0)));
    count_ = Add(&nodes_, "Gather", {Add(&nodes_, "Shape", {scan_.inputs[states_]}), axis});
  }

  // The body of the Loop: it takes its slices itself.
  void OpenBody() {
    const std::string number = b_.UniqueName("iteration"), going_on = b_.UniqueName("going_on");
    std::vector<Node> slices;
    std::string backwards;
    for (size_t i = states_; i < body_.inputs.size(); ++i) {
      const auto k = static_cast<int64_t>(i) - states_;
      std::string at = number;
      if (Way("scan_input_directions", k) == kFromLast) {
        if (backwards.empty()) {
          const std::string last =
              Add(&nodes_, "Sub", {count_, Constant(Tensor::Scalar<int64_t>(1))});
          backwards = Add(&slices, "Sub", {last, number});
        }
        at = backwards;
      }
      Add(&slices, "Gather", {scan_.inputs[i], at}, {{"axis", Way("scan_input_axes", k)}},
          body_.inputs[i].name);
    }
    const std::string more = Add(&slices, "Identity", {going_on});
    body_.nodes.insert(body_.nodes.begin(), slices.begin(), slices.end());
    body_.inputs.resize(states_);
    body_.inputs.insert(body_.inputs.begin(), {{number, ValueType::Of(DType::kInt64, {})},
                                               {going_on, ValueType::Of(DType::kBool, {})}});
    body_.outputs.insert(body_.outputs.begin(), {more, ValueType::Of(DType::kBool, {})});
  }

  // A Loop stacks along the first axis, from the first iteration on: what brings its outputs
  // where the Scan has them.
  absl::StatusOr<std::vector<Node>> MoveOutputs(std::vector<std::string>* outputs) {
    std::vector<Node> after;
    for (size_t k = states_; k < outputs->size(); ++k) {
      const auto i = static_cast<int64_t>(k) - states_;
      const int64_t axis = Way("scan_output_axes", i);
      const bool turned = Way("scan_output_directions", i) == kFromLast;
      if ((*outputs)[k].empty() || (axis == 0 && !turned)) continue;
      const std::string given = std::exchange((*outputs)[k], b_.UniqueName("scan"));
      std::string value = (*outputs)[k];
      if (turned) {
        constexpr int64_t kBeyondFirst = std::numeric_limits<int64_t>::min();
        const auto one = [&](int64_t v) { return Constant(Tensor::FromValues<int64_t>({1}, {v})); };
        value = Add(&after, "Slice", {value, one(-1), one(kBeyondFirst), one(0), one(-1)}, {},
                    axis == 0 ? given : "");
      }
      if (axis == 0) continue;
      ONWARD_ASSIGN_OR_RETURN(std::vector<int64_t> perm, FirstTo(axis, given));
      Add(&after, "Transpose", {value}, {{"perm", std::move(perm)}}, given);
    }
    return after;
  }

  absl::StatusOr<std::vector<int64_t>> FirstTo(int64_t axis, const std::string& output) const {
    const ValueType* type = b_.FactOf(output).type;
    const int rank = type == nullptr ? -1 : type->rank();
    if (rank < 1 || axis >= rank || axis < -rank) {
      return absl::InvalidArgumentError(absl::StrCat("the rank of output '", output,
                                                     "' is not known, or axis ", axis,
                                                     " is none of it; declare its shape"));
    }
    std::vector<int64_t> perm;
    for (int64_t d = 1; d < rank; ++d) perm.push_back(d);
    perm.insert(perm.begin() + (axis < 0 ? axis + rank : axis), 0);
    return perm;
  }

  const Node& scan_;
  GraphBuilder& b_;
  Graph body_;
  int64_t states_ = 0;
  std::string count_;
  std::vector<Node> nodes_;
};

// The standard has a body for it.
absl::StatusOr<std::vector<Node>> SequenceMapAsLoop(const Node& node, GraphBuilder& b) {
  std::vector<InputFact> facts(node.inputs.size());
  for (size_t i = 0; i < facts.size(); ++i) {
    if (!node.inputs[i].empty()) facts[i] = b.FactOf(node.inputs[i]);
  }
  ONWARD_ASSIGN_OR_RETURN(std::optional<Function> body,
                          b.operators()->FunctionBody(node, facts, b.graph().opsets));
  if (!body.has_value()) return absl::UnimplementedError("has no body in this opset");
  return ExpandCall(*body, node, absl::StrCat(b.UniqueName("map"), "_"), &b.names());
}

}  // namespace

absl::StatusOr<std::vector<Node>> AsLoop(const Node& node, GraphBuilder& b) {
  if (node.Is("SequenceMap")) return SequenceMapAsLoop(node, b);
  const Graph* body = node.Subgraph("body");
  if (!node.Is("Scan") || body == nullptr) {
    return absl::InvalidArgumentError("is no Scan or SequenceMap with a body");
  }
  return ScanRewriter(node, *body, b).Run();
}

}  // namespace onward
