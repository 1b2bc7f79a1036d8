// SPDX-License-Identifier: Apache-2.0
// TrainingInfoProto as plain values.
#ifndef ONWARD_TRAINING_INFO_SPEC_H_
#define ONWARD_TRAINING_INFO_SPEC_H_

#include <set>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/verify.h"

namespace onward {

struct Binding {
  std::string variable;  // key: an initializer
  std::string value;     // an output of a graph
};

// In which iterations an entry takes part: those whose number, from 0, is `phase` modulo
// `every`. The file says so in the algorithm's metadata_props.
struct EntryRate {
  int64_t every = 1, phase = 0;
  std::string problem;  // why the file's words mean nothing; "" if they do

  bool Includes(int64_t iteration) const { return iteration % every == phase; }
};
inline constexpr char kMetaEvery[] = "onward.every";
inline constexpr char kMetaPhase[] = "onward.phase";

// One TrainingInfoProto. Graphs are at the model's own opset.
struct TrainingEntry {
  Graph initialization;
  Graph algorithm;  // partial: completed by the inference graph
  std::vector<Binding> initialization_bindings;
  std::vector<Binding> update_bindings;
  EntryRate rate;
  bool readable = true;  // else its graphs are empty, and TrainingSpec::problems says why
};

struct TrainingSpec {
  Graph inference;
  std::vector<TrainingEntry> entries;
  // Initializers that the file keeps sparse: constants, never variables.
  std::set<std::string> sparse;
  // Training graphs that could not be read, where ImportMode says to go on without; they are
  // empty.
  std::vector<Finding> problems;

  // Every initializer that some binding names.
  std::set<std::string> StateVariables() const;
  // The initializer's tensor, wherever it is; null if there is none.
  const Tensor* FindInitializer(const std::string& name) const;
};

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_SPEC_H_
