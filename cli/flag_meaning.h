// SPDX-License-Identifier: Apache-2.0
// Whether two ways to write a flag mean the same.
#ifndef ONWARD_CLI_FLAG_MEANING_H_
#define ONWARD_CLI_FLAG_MEANING_H_

#include <string>

#include "cli/args.h"

namespace onward {

// One text for all values of an author flag that mean the same: lr=0.001 and lr=1e-3, options in
// any order, those left out that have their default. What cannot be read is its own meaning.
std::string FlagMeaning(const Flag& flag, const std::string& value);

}  // namespace onward

#endif  // ONWARD_CLI_FLAG_MEANING_H_
