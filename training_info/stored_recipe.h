// SPDX-License-Identifier: Apache-2.0
// What the metadata of a trainable file say of its training, beside losses, optimizer and schedule.
// Nodes and variables do the work whether it is said or not; this is for who reads the file.
#ifndef ONWARD_TRAINING_INFO_STORED_RECIPE_H_
#define ONWARD_TRAINING_INFO_STORED_RECIPE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/onnx_io/model.h"

namespace onward {

inline constexpr char kMetaPrecision[] = "onward.precision";  // what products are computed in
inline constexpr char kMetaEma[] = "onward.ema";              // decay of the averages
inline constexpr char kMetaClip[] = "onward.clip";            // "value=1,norm=2", in this order
// A JSON list: [{"options":"lr=10x,weight_decay=0","weights":["head.weight"]}].
inline constexpr char kMetaGroups[] = "onward.groups";

// Weights that learn otherwise than the file's optimizer says.
struct GroupFacts {
  std::string options;  // as --group takes them; lr is a factor of the base rate
  std::vector<std::string> weights;
};

struct RecipeFacts {
  std::string precision;   // "": that of the model
  double ema = 0;          // 0: no averages
  std::string clip;        // "": none
  int64_t accumulate = 1;  // steps of an update
  std::vector<GroupFacts> groups;
};

void StoreRecipe(const RecipeFacts& facts, Model* model);
// What is not there, or is not to be understood, is left out.
RecipeFacts StoredRecipe(const Model& model);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_STORED_RECIPE_H_
