// SPDX-License-Identifier: Apache-2.0
// Bodies as graphs of their own, and back.
#ifndef ONWARD_AUTOGRAD_CLOSE_BODY_H_
#define ONWARD_AUTOGRAD_CLOSE_BODY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "autograd/body.h"
#include "autograd/differentiate.h"

namespace onward {

// A copy of a body whose captured values, and the seeds, are inputs (constants:
// initializers).
struct ClosedBody {
  Graph graph;
  std::vector<std::string> inputs;        // the body's own
  std::vector<std::string> initializers;  // the body's own
  std::vector<std::string> ys, seeds, xs;
  std::string prefix;  // of all its names

  // What is said of the copy, in the names of the file.
  std::string InOwnNames(const std::string& text) const;
};

// Names of the copy begin with `prefix` and are new in `around`.
ClosedBody CloseBody(const BodyRequest& request, const std::string& prefix, GraphBuilder& around);

// Fails if it would have to draw random numbers again.
absl::StatusOr<BodyGradients> OpenBody(const ClosedBody& closed, Gradients gradients);

}  // namespace onward

#endif  // ONWARD_AUTOGRAD_CLOSE_BODY_H_
