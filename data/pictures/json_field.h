// SPDX-License-Identifier: Apache-2.0
// One member of a JSON object.
#ifndef ONWARD_DATA_PICTURES_JSON_FIELD_H_
#define ONWARD_DATA_PICTURES_JSON_FIELD_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace onward {

// The text of a string, or a number as it is written; nothing where the object has no such
// member. Lists and objects are no label and are errors.
absl::StatusOr<std::optional<std::string>> JsonScalar(absl::string_view json,
                                                      absl::string_view key);

}  // namespace onward

#endif  // ONWARD_DATA_PICTURES_JSON_FIELD_H_
