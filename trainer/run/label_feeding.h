// SPDX-License-Identifier: Apache-2.0
// Feeding a model whose loss takes labels in another form than the data has them.
#ifndef ONWARD_TRAINER_RUN_LABEL_FEEDING_H_
#define ONWARD_TRAINER_RUN_LABEL_FEEDING_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "data/dataset.h"
#include "trainer/run/feeding.h"
#include "trainer/run/judging.h"

namespace onward {

// Feeding::Create for the data as AlignClasses will give it: where a loss takes probabilities,
// labels that are classes will be such.
absl::StatusOr<Feeding> FeedingFor(const std::shared_ptr<const Dataset>& data,
                                   const std::vector<NamedType>& inputs, const std::string& label,
                                   const std::vector<Judging>& judgings, const Graph& graph);

}  // namespace onward

#endif  // ONWARD_TRAINER_RUN_LABEL_FEEDING_H_
