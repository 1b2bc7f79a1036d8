// SPDX-License-Identifier: Apache-2.0
// SHA-256, to name the files of a run exactly.
#ifndef ONWARD_DATA_SHA256_H_
#define ONWARD_DATA_SHA256_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace onward {

// 64 hexadecimal digits.
std::string Sha256(absl::string_view bytes);
absl::StatusOr<std::string> Sha256OfFile(const std::string& path);

}  // namespace onward

#endif  // ONWARD_DATA_SHA256_H_
