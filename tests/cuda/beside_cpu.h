// SPDX-License-Identifier: Apache-2.0
// Training on the emulated device beside the same training on the CPU.
#ifndef ONWARD_TESTS_CUDA_BESIDE_CPU_H_
#define ONWARD_TESTS_CUDA_BESIDE_CPU_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "environment/environment.h"
#include "tests/cuda/emulated_environment.h"
#include "tests/support/text_model.h"
#include "training_info/step.h"

namespace onward {

inline constexpr double kLossTolerance = 1e-4;

// The CPU with convolutions that round no more than others do.
inline std::unique_ptr<const Environment> ExactCpu() {
  EnvironmentOptions options;
  options.exact_convolutions = true;
  return Environment::Make(options).value();
}

// As many steps on both, with these batches: the wanted outputs agree (none: all of them do, and
// the variables in the end).
inline void ExpectSameTraining(const Model& trainable, int steps,
                               const std::function<TensorMap(int)>& batch,
                               const std::vector<std::string>& wanted = {}) {
  const auto cpu = ExactCpu(), cuda = EmulatedEnvironment();
  auto here = Open(trainable, *cpu), there = Open(trainable, *cuda);
  for (int step = 0; step < steps; ++step) {
    const TensorMap feeds = batch(step);
    const auto expected = here->Step(feeds, wanted), found = there->Step(feeds, wanted);
    ASSERT_TRUE(expected.ok()) << expected.status();
    ASSERT_TRUE(found.ok()) << found.status();
    for (const auto& [name, tensor] : *expected) {
      EXPECT_THAT(Values(found->at(name)),
                  testing::Pointwise(testing::DoubleNear(kLossTolerance), Values(tensor)))
          << name << " in step " << step;
    }
  }
  if (!wanted.empty()) return;
  for (const auto& [name, tensor] : std::as_const(*here).variables()) {
    EXPECT_THAT(ValueOf(*there, name),
                testing::Pointwise(testing::DoubleNear(10 * kLossTolerance), Values(tensor)))
        << name;
  }
}

}  // namespace onward

#endif  // ONWARD_TESTS_CUDA_BESIDE_CPU_H_
