// SPDX-License-Identifier: Apache-2.0
#include "autograd/report.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace onward {
namespace {

constexpr size_t kNamesInErrors = 12;
constexpr char kNoRule[] = "it has neither a gradient rule nor a function body";

// What of `reached` and what it was computed from by steps before `end` carries gradients.
Tape::ValueSet Sources(const Tape& tape, Tape::ValueSet reached, size_t end) {
  for (size_t i = end; i-- > 0;) {
    const Node& node = tape.steps()[i].node;
    const bool gives = absl::c_any_of(node.outputs, [&](const std::string& v) {
      return !v.empty() && reached.contains(v) && !tape.IsX(v);
    });
    if (!gives) continue;
    for (std::string& in : AllInputs(node)) {
      if (tape.IsActive(in)) reached.insert(std::move(in));
    }
  }
  return reached;
}

Tape::ValueSet SourcesOf(const Tape& tape, const Node& node, size_t end) {
  Tape::ValueSet inputs;
  for (std::string& in : AllInputs(node)) {
    if (tape.IsActive(in)) inputs.insert(std::move(in));
  }
  return Sources(tape, std::move(inputs), end);
}

// One for each node that blocks: the step's own, or those within its bodies.
std::vector<Obstacle> MakeObstacles(const Tape& tape, const std::vector<std::string>& xs,
                                    const Block& block) {
  const Step& step = tape.steps()[block.step];
  Obstacle made;
  made.node = step.node.Describe();
  made.op = tape.OpVersion(step.node);
  made.inside = step.inside;
  made.has_rule = !block.refusal.ok();
  made.reason = made.has_rule ? std::string(block.refusal.message()) : tape.WhyNone(step.node);
  if (made.reason.empty()) made.reason = kNoRule;
  made.path = tape.Path(step.node);
  const Tape::ValueSet sources = SourcesOf(tape, step.node, block.step);
  absl::c_copy_if(xs, std::back_inserter(made.blocks),
                  [&](const std::string& x) { return sources.contains(x); });
  if (block.within.empty()) return {made};
  std::vector<Obstacle> within = block.within;
  for (Obstacle& obstacle : within) {
    obstacle.inside = obstacle.inside.empty()
                          ? made.node
                          : absl::StrCat(obstacle.inside, ", in the body of ", made.node);
    obstacle.path = made.path;
    obstacle.blocks = made.blocks;
  }
  return within;
}

std::string WhyZero(const Tape& tape, const std::vector<std::string>& ys, const std::string& x) {
  const std::string y = absl::StrCat("'", absl::StrJoin(ys, "', '"), "'");
  if (!tape.IsNeeded(x)) return absl::StrCat(y, " does not depend on it");
  for (const Tape::Flat& flat : tape.flats()) {
    const Node& node = tape.NodeAt(flat.index);
    if (!SourcesOf(tape, node, flat.step).contains(x)) continue;
    return absl::StrCat("it reaches ", y, " only through steps such as ", node.Describe(),
                        ", where the derivative is zero");
  }
  return absl::StrCat("no derivative of ", y, " by it exists");
}

// Obstacles of one operator, in one place, for one reason.
struct Alike {
  const Obstacle* first;
  size_t count = 1;
  std::vector<std::string> blocks;  // of all of them
};

std::vector<Alike> GroupAlike(const std::vector<Obstacle>& obstacles) {
  std::vector<Alike> groups;
  for (const Obstacle& o : obstacles) {
    const auto it = absl::c_find_if(groups, [&](const Alike& group) {
      return group.first->op == o.op && group.first->inside == o.inside &&
             group.first->reason == o.reason;
    });
    if (it == groups.end()) {
      groups.push_back({&o, 1, o.blocks});
      continue;
    }
    ++it->count;
    absl::c_copy_if(o.blocks, std::back_inserter(it->blocks),
                    [&](const std::string& x) { return !absl::c_linear_search(it->blocks, x); });
  }
  return groups;
}

}  // namespace

std::vector<std::string> GradientReport::Of(Flow flow) const {
  std::vector<std::string> names;
  for (const OfX& x : xs) {
    if (x.flow == flow) names.push_back(x.x);
  }
  return names;
}

GradientReport MakeReport(const Tape& tape, const std::vector<std::string>& ys,
                          const std::vector<std::string>& xs, const std::vector<Block>& blocks,
                          const std::function<bool(const std::string&)>& arrives) {
  GradientReport report;
  report.ys = ys;
  for (const Block& block : blocks) {
    absl::c_move(MakeObstacles(tape, xs, block), std::back_inserter(report.obstacles));
  }
  for (const std::string& x : xs) {
    GradientReport::OfX of{x, GradientReport::Flow::kFlows, ""};
    const auto blocking = absl::c_find_if(report.obstacles, [&](const Obstacle& obstacle) {
      return absl::c_linear_search(obstacle.blocks, x);
    });
    if (blocking != report.obstacles.end()) {
      of.flow = GradientReport::Flow::kBlocked;
      of.reason = absl::StrCat("blocked by ", blocking->node);
    } else if (!arrives(x)) {
      of.flow = GradientReport::Flow::kZero;
      of.reason = WhyZero(tape, ys, x);
    }
    report.xs.push_back(std::move(of));
  }
  return report;
}

std::string ObstacleText(const GradientReport& report) {
  if (report.obstacles.empty()) return "";
  const size_t nodes = report.obstacles.size();
  std::string message =
      absl::StrCat("cannot differentiate '", absl::StrJoin(report.ys, "', '"),
                   "': no gradient passes ", nodes, nodes == 1 ? " node:" : " nodes:");
  for (const Alike& alike : GroupAlike(report.obstacles)) {
    const Obstacle& o = *alike.first;
    const std::string at =
        alike.count == 1 ? o.node : absl::StrCat(alike.count, " nodes, the first ", o.node);
    absl::StrAppend(&message, "\n  ", o.op, " at ", at, o.inside.empty() ? "" : ", in the body of ",
                    o.inside, ": ", o.reason, "\n    on the path ", o.path);
    if (!alike.blocks.empty()) {
      absl::StrAppend(&message, "\n    blocks ", Listed(alike.blocks, kNamesInErrors));
    }
  }
  const auto flowing = report.Of(GradientReport::Flow::kFlows);
  absl::StrAppend(&message, "\n", flowing.size(), " of ", report.xs.size(),
                  " would get a gradient");
  if (!flowing.empty()) absl::StrAppend(&message, ": ", Listed(flowing, kNamesInErrors));
  absl::StrAppend(
      &message,
      "\nFreeze the variables before these nodes, leave them out of what is derived by, "
      "or name a plugin that knows their gradients (--plugin LIB.so).");
  return message;
}

absl::Status ReportToStatus(const GradientReport& report, const std::vector<Block>& blocks) {
  if (blocks.empty()) return absl::OkStatus();
  const bool refused = absl::c_all_of(blocks, [](const Block& b) { return !b.refusal.ok(); });
  return absl::Status(refused ? blocks[0].refusal.code() : absl::StatusCode::kUnimplemented,
                      ObstacleText(report));
}

std::string Listed(const std::vector<std::string>& names, size_t most) {
  const size_t named = std::min(names.size(), most);
  std::string text =
      absl::StrJoin(names.begin(), names.begin() + static_cast<int64_t>(named), ", ");
  if (named < names.size()) absl::StrAppend(&text, " and ", names.size() - named, " more");
  return text;
}

}  // namespace onward
