// SPDX-License-Identifier: Apache-2.0
// Mending a file where there is only one way to do it.
#ifndef ONWARD_TRAINING_INFO_EXPORT_REPAIRED_H_
#define ONWARD_TRAINING_INFO_EXPORT_REPAIRED_H_

#include <string>
#include <vector>

#include "core/onnx_io/model.h"

namespace onward {

struct RepairedModel {
  Model model;
  std::vector<std::string> changes;  // one sentence each; empty if there was nothing to mend
};

// Raises the IR version to what the file holds, imports the training domain in its one version,
// sorts nodes, lists bound values among the outputs, and drops what stands twice (bindings,
// functions, inputs, initializers, nodes) or does nothing (a variable bound to itself). All else is
// left to its author.
RepairedModel Repaired(const Model& model);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_EXPORT_REPAIRED_H_
