// SPDX-License-Identifier: Apache-2.0
// Status plumbing: the two macros this code base allows itself, and checks of
// our own invariants.
#ifndef ONWARD_CORE_BASE_STATUS_H_
#define ONWARD_CORE_BASE_STATUS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#define ONWARD_CONCAT_INNER(a, b) a##b
#define ONWARD_CONCAT(a, b) ONWARD_CONCAT_INNER(a, b)

#define ONWARD_RETURN_IF_ERROR(expr)          \
  do {                                        \
    if (absl::Status _s = (expr); !_s.ok()) { \
      return _s;                              \
    }                                         \
  } while (false)

#define ONWARD_ASSIGN_OR_RETURN(lhs, expr) \
  ONWARD_ASSIGN_OR_RETURN_IMPL(ONWARD_CONCAT(_or_, __LINE__), lhs, expr)
#define ONWARD_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                                 \
  if (!tmp.ok()) return tmp.status();                \
  lhs = std::move(tmp).value()

namespace onward {

// Same code, message preceded by "context: ".
absl::Status Annotate(const absl::Status& status, absl::string_view context);

// Ends the process when one of our own invariants is broken. Never reachable
// from a file, a model or a user's argument.
void CheckInvariant(bool holds, const char* what);

}  // namespace onward

#endif  // ONWARD_CORE_BASE_STATUS_H_
