// SPDX-License-Identifier: Apache-2.0
// Convolutions and products take what follows them along: normalisation with
// fixed statistics, a bias, a residual, an activation.
#ifndef ONWARD_CORE_RUNTIME_REWRITE_FUSE_H_
#define ONWARD_CORE_RUNTIME_REWRITE_FUSE_H_

#include <string>

#include "absl/container/flat_hash_set.h"
#include "core/graph/function_library.h"
#include "core/graph/graph.h"

namespace onward {

class Arrangements;

// Makes readers of a copy read the original; Prune then drops the copy.
void ReadThroughIdentities(Graph* graph);

// Rewrites, where the values between are read by nobody else, are no outputs of
// the graph and are not in `keep`:
//   Conv [BatchNormalization of constants] [Add Z] [Relu | Clip]  -> FusedConv
//   MatMul [Add bias] [Add Z] [Relu | Clip]                       -> FusedMatMul
//   Gemm [Add Z] [Relu | Clip]                                    -> FusedGemm
// Initializers in `keep` change between runs and are not folded. What is folded is shared with
// other plans by `arrangements`, which may be null.
void FuseFollowers(const absl::flat_hash_set<std::string>& keep, Arrangements* arrangements,
                   Graph* graph);

// Likewise, for normalisation with statistics of the batch or that change:
//   BatchNormalization [Add Z] [Relu | Clip]               -> FusedBatchNormalization
//   (ReluGrad | ClipGrad) BatchNormalizationGrad of those  -> FusedBatchNormalizationGrad
// The gradient works out the activation's input again, so nothing keeps it.
void FuseBatchNormalization(const absl::flat_hash_set<std::string>& keep, Graph* graph);

// A table of which a step reads few rows, and whose optimizer leaves rows without a
// gradient as they are (FunctionTraits::row_update), has only those rows updated, with
// the same bits:
//   GatherGrad, a step -> GatherGradRows, the step's function for rows
// GatherGradRows (dY, indices, data) gives, per index, the row and the sum of its
// gradients where the index is the first to name it, else -1 and zeros. The step takes
// both in the place of the gradient.
void UpdateRowsOnly(const absl::flat_hash_set<std::string>& keep, const OperatorSet& operators,
                    Graph* graph);

// A sum of tensors that Pad made of pieces which tile the whole along one axis, as
// gradients of slices are, becomes their Concat.
void JoinPads(const absl::flat_hash_set<std::string>& keep, Graph* graph);

// MaxPool and MaxPoolGrad [ReluGrad], where the device has kernels for them:
//   -> MaxPoolWinners (X) -> Y, winners and MaxPoolWinnersGrad (dY, winners, X) -> dX
// The winners are bytes; of X the gradient needs the shape alone.
void KeepWinnersOfPools(const absl::flat_hash_set<std::string>& keep, Graph* graph);

// FusedConv (X, W, B, Z), FusedMatMul and FusedGemm (A, B, C, Z), with the
// attributes of the operator and
//   activation: "", "Relu" or "Clip", activation_low, activation_high.
// Z has the shape of the result; where no kernel serves a call, its body does.
// FusedBatchNormalization (X, scale, B, mean, var, Z) gives Y, the running statistics
// and table[3, C]: (X - table[0]) * table[1] + table[2] is what the activation gets.
// FusedBatchNormalizationGrad takes (dY, X, scale, table).
void RegisterFusedFunctions(FunctionLibrary& library);
void RegisterRowFunctions(FunctionLibrary& library);
void RegisterWinnerFunctions(FunctionLibrary& library);

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_REWRITE_FUSE_H_
