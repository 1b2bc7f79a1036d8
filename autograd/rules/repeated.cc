// SPDX-License-Identifier: Apache-2.0
// What the gradients of Loop and Scan share.
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "autograd/prepare.h"
#include "autograd/rules/loop.h"
#include "autograd/rules/replay.h"
#include "core/base/status.h"
#include "core/graph/infer_bodies.h"

namespace onward {
namespace {

// A file may chain thousands of states; after so many rounds all of them count.
constexpr int kMaxRounds = 64;

bool CarriesGradient(const ValueType& type) {
  return type.leaf() == DType::kUndefined || IsFloating(type.leaf());
}

// What the outputs of a node are computed from. The statistics that a BatchNormalization in
// training hands on say nothing of its first output.
std::vector<std::string> SourcesOf(const Node& node, const absl::flat_hash_set<std::string>& live) {
  if (node.Is("BatchNormalization") && node.Int("training_mode", 0) != 0 &&
      std::none_of(node.outputs.begin() + 1, node.outputs.end(),
                   [&](const std::string& out) { return live.contains(out); })) {
    return {node.inputs.begin(), node.inputs.begin() + 3};
  }
  return AllInputs(node);
}

// Whether a gradient can come back through each state: one arrives at it, or at what it has a
// part in.
std::vector<bool> StatesThatMatter(const Vjp& v, const Repeated& loop) {
  std::vector<bool> matter(loop.states);
  for (int k = 0; k < loop.states; ++k) matter[k] = v.has_dy(k);
  const int outputs = static_cast<int>(v.node().outputs.size());
  for (int round = 0;; ++round) {
    absl::flat_hash_set<std::string> live;
    for (int k = 0; k < loop.states || k < outputs; ++k) {
      const bool wanted = k < loop.states ? matter[k] : v.has_dy(k);
      if (wanted) live.insert(loop.body.outputs[loop.first_out + k].name);
    }
    for (auto node = loop.body.nodes.rbegin(); node != loop.body.nodes.rend(); ++node) {
      if (std::none_of(node->outputs.begin(), node->outputs.end(),
                       [&](const std::string& out) { return live.contains(out); })) {
        continue;
      }
      for (std::string& in : SourcesOf(*node, live)) live.insert(std::move(in));
    }
    bool grown = false;
    for (int k = 0; k < loop.states; ++k) {
      if (matter[k] ||
          (round < kMaxRounds && !live.contains(loop.body.inputs[loop.first_in + k].name))) {
        continue;
      }
      matter[k] = grown = true;
    }
    if (!grown) return matter;
  }
}

}  // namespace

absl::StatusOr<Repeated> Repetition(const Vjp& v) {
  Node node = v.node();
  node.inputs.resize(node.inputs.size() - CapturedByBodies(node).size());
  return RepetitionOf(std::move(node), v.b());
}

absl::StatusOr<Repeated> RepetitionOf(Node node, GraphBuilder& around) {
  Repeated loop;
  loop.node = std::move(node);
  loop.own = static_cast<int>(loop.node.inputs.size());
  const Graph* body = loop.node.Subgraph("body");
  if (body == nullptr) return absl::InvalidArgumentError("attribute body is missing");
  loop.body = *body;
  std::erase_if(loop.body.inputs,
                [&](const NamedType& in) { return loop.body.initializers.contains(in.name); });
  const bool is_loop = loop.node.Is("Loop");
  loop.first_in = is_loop ? 2 : 0;
  loop.first_out = is_loop ? 1 : 0;
  const int64_t scanned = is_loop ? 2 : loop.node.Int("num_scan_inputs", 0);
  loop.states = static_cast<int>(std::max<int64_t>(loop.own - std::max<int64_t>(scanned, 0), 0));
  const int inputs = is_loop ? 2 + loop.states : loop.own;
  const int outputs = loop.first_out + loop.states;
  if (static_cast<int>(loop.body.inputs.size()) != inputs ||
      static_cast<int>(loop.body.outputs.size()) < outputs ||
      loop.body.outputs.size() - loop.first_out < loop.node.outputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has ", loop.own, " inputs and ", loop.node.outputs.size(), " outputs, its body ",
        loop.body.inputs.size(), " and ", loop.body.outputs.size()));
  }
  loop.types = BodyInputTypes(
      loop.node, [&](const std::string& name) { return around.FactOf(name); }, *around.operators(),
      around.graph().opsets);
  loop.types.resize(inputs);
  loop.replayed_types = loop.types;
  if (!DrawsRandom(around.graph(), loop.node)) {
    loop.replayed = loop.body;
    return loop;
  }
  Replay replay = ReplayBody(loop.body, loop.types, around);
  loop.body = std::move(replay.drawing);
  loop.replayed = std::move(replay.replaying);
  for (NamedType& draw : replay.drawn) {
    loop.draws.push_back(std::move(draw.name));
    loop.replayed_types.push_back(std::move(draw.type));
  }
  return loop;
}

std::vector<int> ActiveStates(const Vjp& v, const Repeated& loop) {
  absl::flat_hash_set<std::string> active;
  const int behind_states = loop.first_in + loop.states;
  for (int i = 0; i < loop.own; ++i) {
    if (v.needs(i)) active.insert(loop.body.inputs[i].name);
  }
  for (int i = loop.own; i < v.inputs(); ++i) {
    if (v.needs(i)) active.insert(v.node().inputs[i]);
  }
  std::vector<std::vector<std::string>> reads;
  for (const Node& node : loop.body.nodes) reads.push_back(AllInputs(node));
  const auto is_active = [&](const std::string& name) { return active.contains(name); };
  for (int round = 0;; ++round) {
    for (size_t i = 0; i < reads.size(); ++i) {
      if (std::none_of(reads[i].begin(), reads[i].end(), is_active)) continue;
      for (const std::string& out : loop.body.nodes[i].outputs) active.insert(out);
    }
    bool grown = false;
    for (int k = 0; k < loop.states; ++k) {
      const std::string& in = loop.body.inputs[loop.first_in + k].name;
      if (active.contains(in) || !CarriesGradient(loop.types[loop.first_in + k])) continue;
      if (round < kMaxRounds && !active.contains(loop.body.outputs[loop.first_out + k].name)) {
        continue;
      }
      active.insert(in);
      grown = true;
    }
    if (!grown) break;
  }
  const std::vector<bool> matter = StatesThatMatter(v, loop);
  std::vector<int> states;
  for (int i = loop.first_in; i < behind_states; ++i) {
    const int k = i - loop.first_in;
    if (matter[k] && active.contains(loop.body.inputs[i].name)) states.push_back(k);
  }
  return states;
}

std::vector<int> WantedCaptured(const Vjp& v, const Repeated& loop) {
  std::vector<int> wanted;
  for (int i = loop.own; i < v.inputs(); ++i) {
    if (v.needs(i)) wanted.push_back(i);
  }
  return wanted;
}

bool IsConstant(const Repeated& loop, int state) {
  absl::flat_hash_map<std::string, std::string> sources;
  for (const Node& node : loop.body.nodes) {
    if (node.Is("Identity") && node.HasInput(0)) sources[node.outputs[0]] = node.inputs[0];
  }
  std::string value = loop.body.outputs[loop.first_out + state].name;
  for (auto it = sources.find(value); it != sources.end(); it = sources.find(value)) {
    value = it->second;
  }
  return value == loop.body.inputs[loop.first_in + state].name;
}

void NameOutputs(GraphBuilder& b, Repeated* loop) {
  loop->node.outputs.resize(loop->body.outputs.size() - loop->first_out);
  for (std::string& out : loop->node.outputs) {
    if (out.empty()) out = b.UniqueName("unread");
  }
}

std::string KeepOf(const char* op, const std::string& value, const ValueType& type, GraphBuilder& b,
                   Repeated* loop) {
  NameOutputs(b, loop);
  const std::string inside = b.UniqueName("kept"), all = b.UniqueName("kept_all");
  loop->body.nodes.push_back(Operation(op, {value}));
  loop->body.nodes.back().outputs = {inside};
  ValueType declared = type;
  ForgetDimNames(&declared);
  loop->body.outputs.push_back({inside, std::move(declared)});
  loop->node.outputs.push_back(all);
  return all;
}

Node Operation(const char* op, std::vector<std::string> inputs, Attributes attributes) {
  Node node;
  node.op_type = op;
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  return node;
}

}  // namespace onward
