// SPDX-License-Identifier: Apache-2.0
// The parts of the text family; RegisterTextKernels calls them.
#ifndef ONWARD_CORE_OPS_TEXT_TEXT_H_
#define ONWARD_CORE_OPS_TEXT_TEXT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/device/kernel.h"

namespace onward {

enum class Case { kLower, kUpper };
// UTF-8 text with every letter that has one in its other case: one code point for one, as
// Unicode's simple mappings have it, in every locale alike. Bytes that are no UTF-8 stay. Fails
// where the system lacks the locale C.UTF-8, which holds the mappings beyond ASCII.
absl::StatusOr<std::string> InCase(std::string_view text, Case wanted);

// Unimplemented unless all inputs hold strings.
absl::Status CheckStrings(const KernelRequest& request);

void RegisterStringKernels(KernelTable& table);      // StringConcat, StringSplit, RegexFullMatch
void RegisterNormalizerKernels(KernelTable& table);  // StringNormalizer
void RegisterTfIdfKernels(KernelTable& table);       // TfIdfVectorizer

}  // namespace onward

#endif  // ONWARD_CORE_OPS_TEXT_TEXT_H_
