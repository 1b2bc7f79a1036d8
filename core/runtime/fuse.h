// SPDX-License-Identifier: Apache-2.0
// Convolutions and products take what follows them along: normalisation with
// fixed statistics, a bias, a residual, an activation.
#ifndef ONWARD_CORE_RUNTIME_FUSE_H_
#define ONWARD_CORE_RUNTIME_FUSE_H_

#include <string>

#include "absl/container/flat_hash_set.h"
#include "core/graph/function_library.h"
#include "core/graph/graph.h"

namespace onward {

// Makes readers of a copy read the original; Prune then drops the copy.
void ReadThroughIdentities(Graph* graph);

// Rewrites, where the values between are read by nobody else, are no outputs of
// the graph and are not in `keep`:
//   Conv [BatchNormalization of constants] [Add Z] [Relu | Clip]  -> FusedConv
//   MatMul [Add bias] [Add Z] [Relu | Clip]                       -> FusedMatMul
//   Gemm [Add Z] [Relu | Clip]                                    -> FusedGemm
// Initializers in `keep` change between runs and are not folded.
void FuseFollowers(const absl::flat_hash_set<std::string>& keep, Graph* graph);

// FusedConv (X, W, B, Z), FusedMatMul and FusedGemm (A, B, C, Z), with the
// attributes of the operator and
//   activation: "", "Relu" or "Clip", activation_low, activation_high.
// Z has the shape of the result; where no kernel serves a call, its body does.
void RegisterFusedFunctions(FunctionLibrary& library);

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_FUSE_H_
