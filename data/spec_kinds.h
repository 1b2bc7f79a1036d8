// SPDX-License-Identifier: Apache-2.0
// The kinds of data that a spec names and the options each takes, as --help lists them.
#ifndef ONWARD_DATA_SPEC_KINDS_H_
#define ONWARD_DATA_SPEC_KINDS_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace onward {

struct DataKind {
  const char* name;
  const char* form;
  const char* what;
  std::vector<const char*> options;  // beside those that apply to all
  bool has_path = true;
};

const std::vector<DataKind>& DataKinds();

// The names of all options that this kind takes.
std::set<std::string> OptionsOf(const DataKind& kind);

// The error of an option whose value is none.
absl::Status WrongOption(absl::string_view name, absl::string_view value,
                         absl::string_view expected);

}  // namespace onward

#endif  // ONWARD_DATA_SPEC_KINDS_H_
