// SPDX-License-Identifier: Apache-2.0
// Environments with far devices, and a network to train there.
#ifndef ONWARD_TESTS_SUPPORT_FAR_TRAINING_H_
#define ONWARD_TESTS_SUPPORT_FAR_TRAINING_H_

#include <memory>
#include <string>
#include <vector>

#include "environment/environment.h"
#include "tests/support/far_device.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"
#include "training_info/step.h"

namespace onward {

struct Far {
  explicit Far(const std::vector<FarOptions>& devices, bool require = false);

  std::shared_ptr<FarCounters> counters = std::make_shared<FarCounters>();
  std::unique_ptr<const Environment> environment;
};

// Weights as text: "-0.45, 0.45, ..."
std::string FarNumbers(int count);
// With a table of rows, batch statistics, draws and a loss.
Model FarNetwork(AuthorOptions options = {});
TensorMap FarBatch(int step);

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_FAR_TRAINING_H_
