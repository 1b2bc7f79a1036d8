// SPDX-License-Identifier: Apache-2.0
#include "tests/support/reference/evaluate.h"

namespace onward::reference {

const Table& MlTable() {
  static const auto* const table = new Table{};
  return *table;
}

}  // namespace onward::reference
