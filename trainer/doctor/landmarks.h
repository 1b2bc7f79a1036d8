// SPDX-License-Identifier: Apache-2.0
// Where to look in the forward pass of a training graph.
#ifndef ONWARD_TRAINER_DOCTOR_LANDMARKS_H_
#define ONWARD_TRAINER_DOCTOR_LANDMARKS_H_

#include <set>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "training_info/spec.h"

namespace onward {

// What the first layers read: an input, or what constants alone have made of it.
struct LayerRead {
  std::string input;  // of the graph
  std::string value;  // that is read
  std::string node;   // the layer, for messages; "" where none was found
  std::string made;   // what it makes of it; "" where none was found
};
// Of inputs whose numbers are read as floats; those that a normalisation takes are as good as
// normalised and left out, as are `labels`. `variables` are initializers that learn.
std::vector<LayerRead> FirstReads(const Graph& graph, const std::set<std::string>& labels,
                                  const std::set<std::string>& variables);

// Values that are zero where a unit is silent.
struct UnitLayer {
  std::string node;  // for messages
  std::string value;
  int rank = 0, axis = 0;  // of the value; the axis of the units
};
std::vector<UnitLayer> UnitLayers(const Graph& graph);

// The weights of the inference graph that training updates; running statistics are none.
std::set<std::string> TrainedWeights(const TrainingSpec& spec);

// Those of `weights` that are only added to something: biases, of whatever shape.
std::set<std::string> AddedWeights(const Graph& graph, const std::set<std::string>& weights);

// Those of `weights` that the graph reads, in the order in which it does.
std::vector<std::string> InForwardOrder(const Graph& graph, const std::set<std::string>& weights);

}  // namespace onward

#endif  // ONWARD_TRAINER_DOCTOR_LANDMARKS_H_
