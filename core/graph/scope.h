// SPDX-License-Identifier: Apache-2.0
// Which names a graph's nodes may read: its own, then those of the graphs around
// it. A chain, because copying the outer names into every body costs their
// product.
#ifndef ONWARD_CORE_GRAPH_SCOPE_H_
#define ONWARD_CORE_GRAPH_SCOPE_H_

#include <string>

#include "absl/container/flat_hash_set.h"

namespace onward {

struct Scope {
  absl::flat_hash_set<std::string> names;
  const Scope* outer = nullptr;

  bool Has(const std::string& name) const {
    return names.contains(name) || (outer != nullptr && outer->Has(name));
  }
};

}  // namespace onward

#endif  // ONWARD_CORE_GRAPH_SCOPE_H_
