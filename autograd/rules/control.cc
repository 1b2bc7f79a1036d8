// SPDX-License-Identifier: Apache-2.0
// Gradient rules: If, Loop and Scan. Each becomes a node of its kind whose bodies
// compute again what they need of the forward bodies and differentiate that. The node
// that a rule sees has the values its bodies capture behind its own inputs.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "autograd/body.h"
#include "autograd/prepare.h"
#include "autograd/rule.h"
#include "autograd/rules/loop.h"
#include "autograd/rules/replay.h"
#include "autograd/shape_expr.h"
#include "autograd/values.h"
#include "core/base/status.h"
#include "core/graph/infer_bodies.h"

namespace onward {
namespace {

// The gradients of a branch of `replayed` by the values `by`.
absl::StatusOr<Attribute::Body> BranchGradient(const Vjp& v, const Node& replayed,
                                               const char* which,
                                               const std::vector<std::string>& by) {
  BodyRequest request{replayed.Subgraph(which)};
  if (request.body == nullptr || request.body->outputs.size() < v.node().outputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(which, " gives too few outputs"));
  }
  for (int k = 0; k < static_cast<int>(v.node().outputs.size()); ++k) {
    if (v.has_dy(k)) request.seeds.emplace_back(k, v.dy(k).name());
  }
  request.by_captured = by;
  ONWARD_ASSIGN_OR_RETURN(BodyGradients derived, v.Derive(request));
  BodyBuilder branch(v.b(), std::move(derived.graph));
  for (const std::string& g : derived.gradients) branch.b().Output(branch.b().Value(g));
  return branch.Finish();
}

// The node without what its branches capture, replayed where they draw.
ReplayedIf ForwardIf(const Vjp& v) {
  Node node = v.node();
  node.inputs.resize(1);
  if (!DrawsRandom(v.b().graph(), node)) return {node, node, {}};
  ReplayedIf forward = ReplayIf(node, v.b());
  for (const NamedType& draw : forward.drawn) v.b().graph().types[draw.name] = draw.type;
  return forward;
}

// Whether the branches read one of the values.
bool Read(const Attributes& branches, const std::vector<NamedType>& values) {
  Node node;
  node.attributes = branches;
  const std::vector<std::string> captured = CapturedByBodies(node);
  return std::any_of(values.begin(), values.end(), [&](const NamedType& value) {
    return std::find(captured.begin(), captured.end(), value.name) != captured.end();
  });
}

// ys = If(c){f(captured)}{g(captured)};  d captured = If(c){f'(dys)}{g'(dys)}
Grads IfVjp(const Vjp& v) {
  GraphBuilder& b = v.b();
  Grads grads(v.inputs());
  std::vector<int> wanted;
  std::vector<std::string> by;
  for (int i = 1; i < v.inputs(); ++i) {
    if (!v.needs(i)) continue;
    wanted.push_back(i);
    by.push_back(v.node().inputs[i]);
  }
  if (wanted.empty()) return grads;
  const ReplayedIf forward = ForwardIf(v);
  Attributes branches;
  for (const char* which : {"then_branch", "else_branch"}) {
    absl::StatusOr<Attribute::Body> branch = BranchGradient(v, forward.replaying, which, by);
    // What stops the other one is to be told, too.
    if (!branch.ok()) {
      b.Fail(branch.status());
    } else {
      branches[which] = *std::move(branch);
    }
  }
  if (!b.status().ok()) return grads;
  if (Read(branches, forward.drawn)) v.Replaced(forward.drawing);
  const std::vector<Expr> results =
      b.Ops("If", {v.x(0)}, static_cast<int>(wanted.size()), std::move(branches));
  for (size_t k = 0; k < wanted.size(); ++k) {
    grads[wanted[k]] = WithShapeOf(results[k], v.x(wanted[k]));
  }
  return grads;
}

}  // namespace

void RegisterControlRules(RuleTable& table) {
  table.Add("If", IfVjp);
  table.Add("Loop", LoopVjp);
  table.Add("Scan", ScanVjp);
}

}  // namespace onward
