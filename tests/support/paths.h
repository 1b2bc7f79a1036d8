// SPDX-License-Identifier: Apache-2.0
// Where tests find shared models and data.
#ifndef ONWARD_TESTS_SUPPORT_PATHS_H_
#define ONWARD_TESTS_SUPPORT_PATHS_H_

#include <string>

namespace onward {

// The path of something below the shared folder; "" where it is absent.
std::string SharedPath(const std::string& relative);

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_PATHS_H_
