// SPDX-License-Identifier: Apache-2.0
// What is wrong with the numbers of a data set, and where.
#ifndef ONWARD_TRAINER_RUN_DATA_CHECK_H_
#define ONWARD_TRAINER_RUN_DATA_CHECK_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/graph/graph.h"
#include "data/batch.h"
#include "data/dataset.h"
#include "trainer/run/feeding.h"

namespace onward {

// "; 'x' of row 3 (line 4) of rows.csv is nan": the first number of the batch that is not
// finite; "" where all are.
std::string BadPlace(const Batch& batch, const Dataset& data);

// Labels that stand for the classes of an output.
struct LabelRange {
  std::string label;    // an input
  std::string output;   // for messages
  int64_t classes = 0;  // 0: not known
  std::optional<int64_t> ignored = std::nullopt;
  bool negative = false;  // negative ones are the affair of somebody's own loss
};

struct DataCheck {
  // All that is stored as numbers, piece by piece; else only as much as is read in no time. Of
  // what is decoded only some is looked at.
  bool all = false;
  bool finite = true;  // whether numbers have to be
};

// How many examples are judged or predicted at once: 256, or fewer where they are large, since the
// values of a network are large then, too.
int64_t ExamplesAtOnce(const Dataset& data);

// What is fed: numbers that are not finite (OutOfRange), and labels that are no class of their
// output, with the row where they stand.
absl::Status CheckData(const Dataset& data, const Feeding& feeding,
                       const std::vector<LabelRange>& ranges, const DataCheck& check);

// Whether something in the graph looks for NaN, and so means to take it.
bool HandlesNan(const Graph& graph);

}  // namespace onward

#endif  // ONWARD_TRAINER_RUN_DATA_CHECK_H_
