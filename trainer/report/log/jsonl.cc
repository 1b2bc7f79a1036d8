// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/log/jsonl.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace onward {
namespace {

// A run that was killed may leave half a line; what follows must not join it.
absl::Status CutPartialLine(const std::string& path) {
  // Reading a pipe would wait for ever.
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return absl::OkStatus();
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (file == nullptr) return absl::OkStatus();
  char buffer[1 << 16];
  int64_t size = 0, whole = 0;
  for (size_t got; (got = std::fread(buffer, 1, sizeof(buffer), file.get())) > 0;) {
    for (size_t i = 0; i < got; ++i) {
      ++size;
      if (buffer[i] == '\n') whole = size;
    }
  }
  if (whole == size || truncate(path.c_str(), whole) == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(path, ": cannot be written: ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<JsonlFile> JsonlFile::Open(const std::string& path, bool append) {
  if (append) ONWARD_RETURN_IF_ERROR(CutPartialLine(path));
  std::FILE* file = std::fopen(path.c_str(), append ? "ab" : "wb");
  if (file == nullptr) {
    return absl::PermissionDeniedError(
        absl::StrCat(path, ": cannot be written: ", std::strerror(errno)));
  }
  return JsonlFile(path, file);
}

absl::Status JsonlFile::Append(const JsonWriter& object) {
  const std::string line = object.text() + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() ||
      std::fflush(file_.get()) != 0) {
    return absl::UnavailableError(
        absl::StrCat(path_, ": cannot be written: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace onward
