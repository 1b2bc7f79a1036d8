// SPDX-License-Identifier: Apache-2.0
#include "onward/status.h"

#include <cstdio>
#include <cstdlib>
#include <ostream>

namespace onward::api {

Status::Status(StatusCode code, std::string message)
    : code_(code), message_(code == StatusCode::kOk ? std::string() : std::move(message)) {}

std::ostream& operator<<(std::ostream& out, const Status& status) {
  return out << (status.ok() ? "ok" : status.message());
}

void EndForLackOfValue(const Status& status) {
  std::fprintf(stderr, "onward: %s\n", status.message().c_str());
  std::abort();
}

}  // namespace onward::api
