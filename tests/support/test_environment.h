// SPDX-License-Identifier: Apache-2.0
// What the tests of one program run on: the CPU, or, where ONWARD_TEST_DEVICE names a device
// ("cuda-emu"), that one before the CPU. The rows, references and tolerances are the same.
//
// Every step that the device could not take is counted, and the program ends with a line of them
// by operator. An operator that tests/cuda/fallbacks.txt does not list fails the test that it fell
// back in.
#ifndef ONWARD_TESTS_SUPPORT_TEST_ENVIRONMENT_H_
#define ONWARD_TESTS_SUPPORT_TEST_ENVIRONMENT_H_

#include "environment/environment.h"

namespace onward {

const Environment& TestEnvironment();

// Whether that has a device with memory of its own.
bool OnDevice();

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_TEST_ENVIRONMENT_H_
