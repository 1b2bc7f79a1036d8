// SPDX-License-Identifier: Apache-2.0
#include "core/onnx_io/companions.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "core/base/atomic_file.h"
#include "core/onnx_io/model_bytes.h"
#include "core/onnx_io/wire_scan.h"
#include "onnx/onnx_pb.h"

namespace onward {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDigits = 8;

bool IsCompanion(absl::string_view name, absl::string_view prefix) {
  return absl::ConsumePrefix(&name, prefix) && name.size() == kDigits &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isxdigit(c); });
}

// Takes the files that a model names out of `names`; false if it cannot be read. What is no
// model names nothing.
bool EraseNamed(const fs::path& model, std::set<std::string>* names) {
  auto bytes = ModelBytes::Open(model.string(), kMostModelBytes, /*glance=*/true);
  if (!bytes.ok()) return bytes.status().code() == absl::StatusCode::kInvalidArgument;
  const auto scanned = ScanModel(&*bytes, [&](const WireField& field, std::vector<Splice>*) {
    if (field.number != kExternalData) return;
    onnx::StringStringEntryProto entry;
    entry.ParseFromArray(bytes->Load(field.payload, field.end) + field.payload,
                         static_cast<int>(field.end - field.payload));
    if (entry.key() == "location") names->erase(entry.value());
  });
  return bytes->ok();
}

}  // namespace

void RemoveUnusedCompanions(const std::string& target) {
  const fs::path path(target);
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const std::string prefix = CompanionPrefix(target);
  std::set<std::string> unused;
  std::vector<fs::path> models;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    std::error_code ignored;
    if (!it->is_regular_file(ignored)) continue;
    if (IsCompanion(name, prefix)) {
      unused.insert(name);
    } else if (name == path.filename() || absl::StrContains(name, "onnx")) {
      models.push_back(it->path());
    }
  }
  if (error || unused.empty()) return;
  for (const fs::path& model : models) {
    if (!EraseNamed(model, &unused)) return;
  }
  for (const std::string& name : unused) RemoveIfAbandoned((folder / name).string());
}

}  // namespace onward
