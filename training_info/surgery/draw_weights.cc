// SPDX-License-Identifier: Apache-2.0
#include "core/base/status.h"
#include "core/onnx_io/model.h"
#include "core/runtime/session.h"
#include "training_info/surgery/surgery.h"

namespace onward {

absl::Status DrawWeights(const std::vector<std::string>& names, const InitSpec& spec, uint64_t seed,
                         const Environment& environment, Graph* graph) {
  if (names.empty()) return absl::OkStatus();
  TrainingEntry entry;
  ONWARD_RETURN_IF_ERROR(
      AddInitialization(*graph, names, {}, spec, environment.operators(), &entry));
  ONWARD_ASSIGN_OR_RETURN(Graph canonical, Canonicalize(entry.initialization));
  Session session(std::move(canonical), environment.compile_options());
  RunOptions run;
  run.random = {seed, 0};
  ONWARD_ASSIGN_OR_RETURN(const TensorMap drawn, session.Run({}, nullptr, run));
  for (const Binding& b : entry.initialization_bindings)
    graph->initializers.insert_or_assign(b.variable, drawn.at(b.value).Clone());
  return absl::OkStatus();
}

}  // namespace onward
