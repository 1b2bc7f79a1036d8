// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/options.h"

#include "absl/strings/numbers.h"

namespace onward {

int64_t MetadataInt(const Model& model, const char* key, int64_t otherwise) {
  int64_t value = 0;
  return absl::SimpleAtoi(model.Metadata(key), &value) ? value : otherwise;
}

int64_t StepsPerEpoch(const TrainOptions& options, int64_t examples) {
  const bool short_batch = examples % options.batch != 0 && !options.drop_last;
  return examples / options.batch + (short_batch ? 1 : 0);
}

int64_t PlannedSteps(const TrainOptions& options, int64_t examples) {
  return options.steps > 0 ? options.steps : options.epochs * StepsPerEpoch(options, examples);
}

}  // namespace onward
