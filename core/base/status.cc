// SPDX-License-Identifier: Apache-2.0
#include "core/base/status.h"

#include <cstdio>
#include <cstdlib>

namespace onward {

absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(context, ": ", status.message()));
}

void CheckInvariant(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "onward: broken invariant: %s\n", what);
  std::abort();
}

}  // namespace onward
