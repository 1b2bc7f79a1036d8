// SPDX-License-Identifier: Apache-2.0
// Whether tests that have a short form take the long one: where ONWARD_LONG_TESTS is set
// (CONTRIBUTING.md).
#ifndef ONWARD_TESTS_SUPPORT_LONG_TESTS_H_
#define ONWARD_TESTS_SUPPORT_LONG_TESTS_H_

#include <cstdlib>

namespace onward {

inline bool LongTests() { return std::getenv("ONWARD_LONG_TESTS") != nullptr; }

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_LONG_TESTS_H_
