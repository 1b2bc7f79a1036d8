// SPDX-License-Identifier: Apache-2.0
#include "core/device/arrangements.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace onward {

Arrangements::Key Arrangements::KeyOf(absl::Span<const Tensor* const> constants, std::string form) {
  Key key{{}, std::move(form)};
  for (const Tensor* t : constants) {
    key.first.push_back(t->raw());
    // Files may give the same bytes twice, with other types.
    absl::StrAppend(&key.second, " ", DTypeName(t->dtype()), t->shape().ToString());
  }
  return key;
}

std::shared_ptr<const void> Arrangements::Find(absl::Span<const Tensor* const> constants,
                                               const std::string& form) const {
  const auto found = entries_.find(KeyOf(constants, form));
  return found == entries_.end() ? nullptr : found->second.made.lock();
}

void Arrangements::Keep(absl::Span<const Tensor* const> constants, std::string form,
                        const std::shared_ptr<const void>& made) {
  // Memory that may go away and come back with other contents is not recognised.
  if (!absl::c_all_of(constants, [](const Tensor* t) { return t->owned(); })) return;
  if (entries_.size() >= sweep_at_) {
    std::erase_if(entries_, [](const auto& entry) { return entry.second.made.expired(); });
    sweep_at_ = 2 * entries_.size() + 64;
  }
  Entry entry{{}, made};
  for (const Tensor* t : constants) entry.constants.push_back(*t);
  entries_[KeyOf(constants, std::move(form))] = std::move(entry);
}

}  // namespace onward
