// SPDX-License-Identifier: Apache-2.0
#include "onward/status.h"

#include <ostream>

namespace onward::api {

std::ostream& operator<<(std::ostream& out, const Status& status) {
  return out << (status.ok() ? "ok" : status.message());
}

}  // namespace onward::api
