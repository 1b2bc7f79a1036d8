// SPDX-License-Identifier: Apache-2.0
// What `onward inspect --device` says of where the nodes of a model run, and why there.
#ifndef ONWARD_CLI_INSPECT_DEVICES_H_
#define ONWARD_CLI_INSPECT_DEVICES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/onnx_io/model.h"
#include "environment/environment.h"
#include "trainer/report/log/jsonl.h"

namespace onward {

struct PlacedNode {
  std::string op, name;  // several operators that run as one are joined by +
  std::string device;
  std::string why;  // it is not on the first device, if it is not
  int graph = 0;    // of those that the plan records, from 1; 0: none
};

// One graph of a file, as it is compiled for the declared shapes.
struct Placement {
  std::string what;     // "inference", "training_info[0]"
  std::string problem;  // why it cannot be told; the rest is empty then
  std::vector<PlacedNode> nodes;
  std::map<std::string, int> on;       // device -> nodes
  std::map<std::string, int> reasons;  // why -> nodes
  int copies = 0, graphs = 0;
  size_t behind_data = 0;  // nodes that are compiled when the shapes they read are known
};

// Open sizes are `batch` for the first axis, 8 for others.
std::vector<Placement> PlacementsOf(const Model& model, int64_t batch,
                                    const Environment& environment);
void PrintPlacements(const std::vector<Placement>& placements);
void WritePlacements(const std::vector<Placement>& placements, JsonWriter* w);

}  // namespace onward

#endif  // ONWARD_CLI_INSPECT_DEVICES_H_
