// SPDX-License-Identifier: Apache-2.0
// What `onward inspect` says of adapters, and of how much a training changes.
#ifndef ONWARD_CLI_INSPECT_ADAPTERS_H_
#define ONWARD_CLI_INSPECT_ADAPTERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/report/log/jsonl.h"
#include "training_info/adapters/adapter.h"
#include "training_info/spec.h"

namespace onward {

struct AdapterFacts {
  struct Row {
    Adapter adapter;
    Shape a, b;
  };
  std::vector<Row> adapters;
  bool has_training = false;
  // Elements of the inference graph's weights, quantized ones by the numbers they stand for.
  int64_t trained = 0, frozen = 0;
  std::vector<std::string> learning;  // initializers that training changes, statistics apart
};

// Of the inference graph; quantized weights are counted where the types of values are known.
AdapterFacts GatherAdapterFacts(const TrainingSpec& spec, const Graph& graph);
void PrintAdapterFacts(const AdapterFacts& facts);
void WriteAdapterFacts(const AdapterFacts& facts, JsonWriter* w);

}  // namespace onward

#endif  // ONWARD_CLI_INSPECT_ADAPTERS_H_
