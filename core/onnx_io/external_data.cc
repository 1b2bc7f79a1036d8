// SPDX-License-Identifier: Apache-2.0
#include "core/onnx_io/external_data.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/file_descriptor.h"
#include "core/base/memory.h"
#include "core/base/status.h"

namespace onward {
namespace {

// What kernels expect of where a tensor begins.
constexpr uint64_t kMappedAlignment = 16;
// A model may keep each tensor in a file of its own.
constexpr size_t kMostOpenFiles = 256;

absl::Status Refuse(const std::string& location, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("external data '", location, "': ", why));
}

absl::Status CheckLocation(const std::string& location) {
  if (location.empty() || location == ".") return Refuse(location, "no file is named");
  if (location[0] == '/' || location[0] == '\\' || (location.size() > 1 && location[1] == ':')) {
    return Refuse(location, "the path is absolute; it must be relative to the model file");
  }
  if (location.find('\0') != std::string::npos) return Refuse("?", "the path holds a NUL byte");
  for (absl::string_view part : absl::StrSplit(location, absl::ByAnyChar("/\\"))) {
    if (part == "..") return Refuse(location, "the path leaves the model's folder");
  }
  return absl::OkStatus();
}

// Decimal digits only: no sign, no hex, no spaces.
absl::Status ParseNumber(const std::string& location, const std::string& key,
                         const std::string& text, uint64_t* value) {
  *value = 0;
  if (text.empty() || text.size() > 19) {
    return Refuse(location, absl::StrCat(key, " '", text, "' is not a number"));
  }
  for (char c : text) {
    if (c < '0' || c > '9')
      return Refuse(location, absl::StrCat(key, " '", text, "' is not a number"));
    *value = *value * 10 + static_cast<uint64_t>(c - '0');
  }
  return absl::OkStatus();
}

// Opens `location` beneath `folder` without following any link.
int OpenBeneath(int folder, const std::string& location) {
  open_how how = {};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const long fd = syscall(SYS_openat2, folder, location.c_str(), &how, sizeof(how));
  if (fd >= 0 || errno != ENOSYS) return static_cast<int>(fd);
  // Old kernels: one component at a time, none of them a link.
  int at = dup(folder);
  std::vector<std::string> parts = absl::StrSplit(location, '/', absl::SkipEmpty());
  for (size_t i = 0; i < parts.size() && at >= 0; ++i) {
    const int flags =
        O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (i + 1 < parts.size() ? O_DIRECTORY : 0);
    const int next = openat(at, parts[i].c_str(), flags);
    close(at);
    at = next;
  }
  return at;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const WeightFile>> ExternalData::Open(
    const std::string& location) const {
  if (auto it = files_.find(location); it != files_.end()) return it->second;
  FileDescriptor folder(
      open(folder_.empty() ? "." : folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return Refuse(location, "the model's folder cannot be opened");
  const int fd = OpenBeneath(folder.get(), location);
  if (fd < 0) {
    if (errno == ELOOP || errno == EXDEV) return Refuse(location, "links are not followed");
    return absl::NotFoundError(absl::StrCat("external data '", location,
                                            "': ", std::strerror(errno),
                                            " (expected beside the model file)"));
  }
  struct stat info;
  const bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  const auto size = regular ? static_cast<size_t>(info.st_size) : 0;
  auto file = std::make_shared<const WeightFile>(fd, size, info.st_dev, info.st_ino,
                                                 files_.size() < kMostOpenFiles);
  if (!regular) return Refuse(location, "not a regular file");
  if (info.st_nlink != 1)
    return Refuse(location, "the file has several hard links; copy it instead");
  return files_.emplace(location, std::move(file)).first->second;
}

absl::StatusOr<Weights::Bytes> ExternalData::Get(const std::vector<ExternalKey>& entries,
                                                 size_t bytes) const {
  std::string location;
  uint64_t offset = 0, length = 0;
  bool has_length = false;
  std::set<std::string> seen;
  for (const ExternalKey& e : entries) {
    if (!seen.insert(e.key).second)
      return Refuse(location, absl::StrCat("key '", e.key, "' is given twice"));
    if (e.key == "location") location = e.value;
  }
  ONWARD_RETURN_IF_ERROR(CheckLocation(location));
  for (const ExternalKey& e : entries) {
    if (e.key == "offset") ONWARD_RETURN_IF_ERROR(ParseNumber(location, e.key, e.value, &offset));
    if (e.key == "length") {
      has_length = true;
      ONWARD_RETURN_IF_ERROR(ParseNumber(location, e.key, e.value, &length));
    }
  }
  ONWARD_ASSIGN_OR_RETURN(std::shared_ptr<const WeightFile> file, Open(location));
  const uint64_t size = file->size();
  if (offset > size || bytes > size - offset) {
    return absl::DataLossError(absl::StrCat("external data '", location, "': ", bytes,
                                            " bytes at offset ", offset,
                                            " needed, but the file has ", size, " bytes"));
  }
  const uint64_t given = has_length ? length : size - offset;
  if (has_length ? given != bytes : given < bytes) {
    return Refuse(location,
                  absl::StrCat("length ", given, " does not match the tensor's ", bytes, " bytes"));
  }
  const uint64_t memory = PhysicalMemory().value_or(std::numeric_limits<uint64_t>::max());
  if (bytes > memory / 4 * 3 - total_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "external data '", location, "': the model needs more memory than this machine has"));
  }
  total_ += bytes;
  if (bytes >= kHeldBytes && file->data() != nullptr && offset % kMappedAlignment == 0) {
    // Nobody writes to a tensor that came from a model.
    auto owner = std::const_pointer_cast<WeightFile>(file);
    return Weights::Bytes{file->data() + offset, bytes, std::move(owner), false, file, offset};
  }
  try {
    Weights::Bytes read = Weights::New(bytes);
    if (!file->Read(read.data, bytes, offset)) {
      return absl::DataLossError(absl::StrCat("external data '", location, "': read failed"));
    }
    read.file = file;
    read.offset = offset;
    return read;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("external data '", location, "': out of memory"));
  }
}

}  // namespace onward
