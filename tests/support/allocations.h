// SPDX-License-Identifier: Apache-2.0
// How often something asks for memory. A program that calls this gets an
// operator new that counts.
#ifndef ONWARD_TESTS_SUPPORT_ALLOCATIONS_H_
#define ONWARD_TESTS_SUPPORT_ALLOCATIONS_H_

#include <cstdint>
#include <functional>

namespace onward {

// Calls of operator new while `body` runs, on all threads.
int64_t CountAllocations(const std::function<void()>& body);

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_ALLOCATIONS_H_
