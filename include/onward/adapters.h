// SPDX-License-Identifier: Apache-2.0
// Low-rank adapters (LoRA), which AuthorOptions::lora adds: in models, apart from them, and merged
// into the weights beside which they stand.
//
// Threads: these functions may run on several threads at once.
#ifndef ONWARD_ADAPTERS_H_
#define ONWARD_ADAPTERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "onward/environment.h"
#include "onward/model.h"
#include "onward/status.h"

namespace onward::api {

// y = x W + alpha/rank ((x A) B)
struct Adapter {
  std::string weight;  // the name of W
  std::string a, b;    // the initializers that learn
  int64_t rank = 0;
  double alpha = 0;
};

// Those of a model, or of a file of adapters.
Result<std::vector<Adapter>> Adapters(const Model& model);

enum class AdapterMerge {
  kFloatWeights,  // into float weights; adapters of quantized ones stay nodes of the graph
  kDequantize,    // quantized weights become float ones, to take theirs
  kRemove,        // away with them: the model that they stand beside
};
struct MergedAdapters {
  Model model;                      // a plain inference model
  std::vector<std::string> merged;  // names of weights
  std::vector<std::string> kept;    // those whose adapters are still nodes
};
Result<MergedAdapters> MergeAdapters(const Model& model,
                                     AdapterMerge how = AdapterMerge::kFloatWeights,
                                     const Environment& environment = {});

// A small model without nodes: the adapters as initializers, with metadata that tell what they
// belong to, and weights that were trained whole beside them.
Result<Model> ExtractAdapters(const Model& trained);
// The model with the adapters of such a file, as nodes.
Result<Model> ApplyAdapters(const Model& model, const Model& adapters,
                            const Environment& environment = {});

}  // namespace onward::api

#endif  // ONWARD_ADAPTERS_H_
