// SPDX-License-Identifier: Apache-2.0
// Numbers of a table as a layer takes them best: beside each number, how far it is through each of
// the ranges that hold equally many of the examples (piecewise linear encoding; Gorishniy et al.,
// "On Embeddings for Numerical Features in Tabular Deep Learning").
#ifndef ONWARD_TRAINER_MAKE_BINS_H_
#define ONWARD_TRAINER_MAKE_BINS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/builder.h"
#include "data/dataset.h"

namespace onward {

// One for each range. Encoded: (clip((x - low) / width, 0, 1) - mean) / deviation, so that the
// layer sees numbers of one scale.
struct NumberBins {
  std::vector<int64_t> column;  // of x
  std::vector<float> low, width, mean, deviation;

  int64_t size() const { return static_cast<int64_t>(column.size()); }
};

// Of the numbers and parts of dates in a prepared table, whose numbers are field `field`: up to 16
// each, fewer where there are few examples or many columns; none for those with few values.
absl::StatusOr<NumberBins> FindBins(const Dataset& data, size_t field,
                                    const TablePreparation& table);

// [N, numbers] to [N, bins].
Expr Binned(const Expr& x, const NumberBins& bins, GraphBuilder* b);

}  // namespace onward

#endif  // ONWARD_TRAINER_MAKE_BINS_H_
