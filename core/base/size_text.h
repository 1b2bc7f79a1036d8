// SPDX-License-Identifier: Apache-2.0
// Sizes of memory and files as people read them.
#ifndef ONWARD_CORE_BASE_SIZE_TEXT_H_
#define ONWARD_CORE_BASE_SIZE_TEXT_H_

#include <cstdint>
#include <string>

namespace onward {

// "512 bytes", "1.5 kB", "17.9 MB", "3.5 GB"; steps of 1024.
std::string SizeText(int64_t bytes);

}  // namespace onward

#endif  // ONWARD_CORE_BASE_SIZE_TEXT_H_
