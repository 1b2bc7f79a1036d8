// SPDX-License-Identifier: Apache-2.0
// Why there is no gradient, for every x and every node at once.
#ifndef ONWARD_AUTOGRAD_REPORT_H_
#define ONWARD_AUTOGRAD_REPORT_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "autograd/tape.h"

namespace onward {

// A node that no gradient passes although one should.
struct Obstacle {
  std::string node;    // as Node::Describe has it
  std::string op;      // "Gemm-13"
  std::string inside;  // the node whose body it is part of; "" where it is a node of the graph
  std::string reason;
  std::string path;                 // one way through it: "w -> h1 -> [fc2] -> h2 -> loss"
  std::vector<std::string> blocks;  // the xs whose gradient would have to pass it
  bool has_rule = false;            // and the rule refuses this call
};

struct GradientReport {
  enum class Flow {
    kFlows,
    kZero,     // y does not change with it, as far as derivatives tell
    kBlocked,  // by an obstacle
  };
  struct OfX {
    std::string x;
    Flow flow = Flow::kFlows;
    std::string reason;  // "" where a gradient flows
  };
  std::vector<std::string> ys;
  std::vector<OfX> xs;
  std::vector<Obstacle> obstacles;

  // Names of the xs of this flow.
  std::vector<std::string> Of(Flow flow) const;
};

// Where the tape is blocked: a step, what its rule said (ok: it has no rule), and the nodes of
// its bodies that are the reason, if they are.
struct Block {
  size_t step;
  absl::Status refusal;
  std::vector<Obstacle> within = {};
};

// `arrives` tells whether the walk brought a gradient to an x.
GradientReport MakeReport(const Tape& tape, const std::vector<std::string>& ys,
                          const std::vector<std::string>& xs, const std::vector<Block>& blocks,
                          const std::function<bool(const std::string&)>& arrives);

// All obstacles in one message: what they block, what gets a gradient, the remedy. "" where
// there are none.
std::string ObstacleText(const GradientReport& report);
// The same as an error, with the code of the rules that refuse, or Unimplemented.
absl::Status ReportToStatus(const GradientReport& report, const std::vector<Block>& blocks);

// "a, b and 3 more", at most so many by name.
std::string Listed(const std::vector<std::string>& names, size_t most);

}  // namespace onward

#endif  // ONWARD_AUTOGRAD_REPORT_H_
