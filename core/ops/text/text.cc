// SPDX-License-Identifier: Apache-2.0
// Strings: normalising, splitting, matching, counting n-grams.
#include "core/ops/text/text.h"

#include "absl/strings/str_cat.h"
#include "core/ops/cpu/register.h"

namespace onward {

absl::Status CheckStrings(const KernelRequest& request) {
  for (const ValueSpec& input : request.inputs) {
    if (input.dtype == DType::kString) continue;
    return NodeUnimplemented(request.node,
                             absl::StrCat("no kernel for ", std::string(DTypeName(input.dtype))));
  }
  return absl::OkStatus();
}

void RegisterTextKernels(KernelTable& table) {
  RegisterStringKernels(table);
  RegisterNormalizerKernels(table);
  RegisterTfIdfKernels(table);
}

}  // namespace onward
