// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/label_feeding.h"

#include "core/base/status.h"
#include "data/mixing.h"
#include "trainer/run/class_labels.h"

namespace onward {

absl::StatusOr<Feeding> FeedingFor(const std::shared_ptr<const Dataset>& data,
                                   const std::vector<NamedType>& inputs, const std::string& label,
                                   const std::vector<Judging>& judgings, const Graph& graph) {
  for (const Judging& judging : judgings) {
    if (!judging.scoring.soft_labels || data->classes() == 0) continue;
    const int64_t outputs = OutputClasses(graph.TypeOf(judging.output), judging.scoring);
    ONWARD_ASSIGN_OR_RETURN(const std::unique_ptr<Dataset> soft,
                            WithSoftLabels(data, outputs > 0 ? outputs : data->classes()));
    ONWARD_ASSIGN_OR_RETURN(Feeding feeding, Feeding::Create(*soft, inputs, label));
    if (feeding.label_input() == judging.label) return feeding;
  }
  return Feeding::Create(*data, inputs, label);
}

}  // namespace onward
