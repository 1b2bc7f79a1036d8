// SPDX-License-Identifier: Apache-2.0
#include "data/pictures/json_field.h"

#include "absl/strings/str_cat.h"
#include "core/base/json.h"

namespace onward {

absl::StatusOr<std::optional<std::string>> JsonScalar(absl::string_view json,
                                                      absl::string_view key) {
  const auto object = ParseJson(json);
  if (!object.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("is no JSON object: ", object.status().message()));
  }
  if (!object->is(Json::Kind::kObject)) {
    return absl::InvalidArgumentError("is no JSON object");
  }
  const Json* value = object->Find(key);
  if (value == nullptr) return std::nullopt;
  switch (value->kind()) {
    case Json::Kind::kString:
    case Json::Kind::kNumber: return value->text();
    case Json::Kind::kBool: return value->truth() ? "true" : "false";
    case Json::Kind::kNull: return "null";
    case Json::Kind::kArray:
    case Json::Kind::kObject: break;
  }
  return absl::InvalidArgumentError(absl::StrCat("'", key, "' is no single value"));
}

}  // namespace onward
