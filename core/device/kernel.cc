// SPDX-License-Identifier: Apache-2.0
#include "core/device/kernel.h"

#include "core/base/status.h"
#include "core/device/arrangements.h"

namespace onward {

bool SameLayout(const Layout& a, const Layout& b) {
  if (a == b) return true;
  return a != nullptr && b != nullptr && a->Equals(*b);
}

ConstantInput KernelRequest::ConstantAt(int i) const {
  return HasInput(i) ? ConstantInput(inputs[i].constant, arrangements) : ConstantInput();
}

void KernelTable::Add(std::string_view op, Entry entry, std::string_view domain) {
  entries_[{std::string(domain), std::string(op)}].push_back(std::move(entry));
}

const std::vector<KernelTable::Entry>* KernelTable::Find(std::string_view op,
                                                         std::string_view domain) const {
  auto it = entries_.find(std::pair(domain, op));
  return it == entries_.end() ? nullptr : &it->second;
}

const ShapeRule* KernelTable::FindShape(std::string_view op, std::string_view domain) const {
  const std::vector<Entry>* entries = Find(op, domain);
  if (entries == nullptr) return nullptr;
  for (const Entry& entry : *entries) {
    if (entry.shape != nullptr) return &entry.shape;
  }
  return nullptr;
}

absl::Status NodeError(const Node& node, std::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(node.Describe(), ": ", std::string(message)));
}

absl::Status NodeUnimplemented(const Node& node, std::string_view message) {
  return absl::UnimplementedError(absl::StrCat(node.Describe(), ": ", std::string(message)));
}

}  // namespace onward
