// SPDX-License-Identifier: Apache-2.0
#include "data/file_bytes.h"

#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/memory.h"
#include "core/base/status.h"

namespace onward {
namespace {

constexpr size_t kChunk = size_t{1} << 20;
constexpr uint64_t kAssumedMemory = uint64_t{1} << 34;  // where the system does not tell

// Calls read(destination, count) until it returns 0, growing the string with
// what has really arrived.
template <typename Read>
absl::StatusOr<std::string> ReadAll(const std::string& path, size_t expected, const Read& read) {
  std::string bytes(expected + 1, '\0');
  size_t used = 0;
  while (true) {
    if (used == bytes.size()) {
      const size_t grown = std::max(kChunk, bytes.size() * 2);
      ONWARD_RETURN_IF_ERROR(CheckFitsInMemory(path, grown));
      bytes.resize(grown);
    }
    const size_t want = std::min(bytes.size() - used, size_t{1} << 30);
    ONWARD_ASSIGN_OR_RETURN(const size_t got, read(bytes.data() + used, want));
    if (got == 0) break;
    used += got;
  }
  bytes.resize(used);
  bytes.shrink_to_fit();
  return bytes;
}

// What gzread has just returned: a number of bytes, or what is wrong.
absl::StatusOr<size_t> Unpacked(const std::string& path, gzFile file, int got) {
  int code = Z_OK;
  const char* message = gzerror(file, &code);
  if (code == Z_BUF_ERROR) {
    return absl::DataLossError(
        absl::StrCat(path, ": the gzip data ends early; the file is truncated"));
  }
  if (code == Z_ERRNO) return FileError(path, "cannot be read", errno);
  if (got < 0) {
    return absl::DataLossError(absl::StrCat(path, ": damaged gzip data (", message, ")"));
  }
  return static_cast<size_t>(got);
}

absl::Status NotGzip(const std::string& path, absl::string_view bytes) {
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": is named .gz but is not a gzip file (starts with ", FirstBytes(bytes), ")"));
}

using GzFile = std::unique_ptr<gzFile_s, int (*)(gzFile)>;

absl::StatusOr<GzFile> OpenGzip(const std::string& path) {
  GzFile file(gzopen(path.c_str(), "rb"), gzclose);
  if (file == nullptr) return FileError(path, "cannot be opened", errno);
  gzbuffer(file.get(), 1 << 17);
  return file;
}

}  // namespace

absl::Status FileError(const std::string& path, absl::string_view what, int error) {
  const std::string message = absl::StrCat(path, ": ", what, ": ", std::strerror(error));
  if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(message);
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(message);
  return absl::UnavailableError(message);
}

absl::Status CheckFitsInMemory(absl::string_view what, uint64_t bytes) {
  const uint64_t memory = PhysicalMemory().value_or(kAssumedMemory);
  if (bytes <= memory) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "%s: needs %.1f GB of memory, this machine has %.1f GB", what, bytes / 1e9, memory / 1e9));
}

absl::StatusOr<uint64_t> OrdinaryFileSize(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return FileError(path, "cannot be opened", errno);
  if (S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a folder, expected a file"));
  }
  // A pipe would keep us waiting, a device may have no end.
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a pipe or device, expected a file"));
  }
  return static_cast<uint64_t>(info.st_size);
}

absl::StatusOr<size_t> ReadableSize(const std::string& path) {
  ONWARD_ASSIGN_OR_RETURN(const uint64_t size, OrdinaryFileSize(path));
  ONWARD_RETURN_IF_ERROR(CheckFitsInMemory(path, size));
  return static_cast<size_t>(size);
}

absl::StatusOr<std::string> ReadFileBytes(const std::string& path) {
  ONWARD_ASSIGN_OR_RETURN(const size_t size, ReadableSize(path));
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (file == nullptr) return FileError(path, "cannot be opened", errno);
  return ReadAll(path, size, [&](char* to, size_t count) -> absl::StatusOr<size_t> {
    const size_t got = std::fread(to, 1, count, file.get());
    if (got == 0 && std::ferror(file.get())) return FileError(path, "cannot be read", errno);
    return got;
  });
}

absl::StatusOr<std::string> ReadPlainOrGzip(const std::string& path) {
  ONWARD_ASSIGN_OR_RETURN(const size_t size, ReadableSize(path));
  ONWARD_ASSIGN_OR_RETURN(const GzFile file, OpenGzip(path));
  auto bytes = ReadAll(path, size, [&](char* to, size_t count) {
    return Unpacked(path, file.get(), gzread(file.get(), to, static_cast<unsigned>(count)));
  });
  if (bytes.ok() && absl::EndsWith(path, ".gz") && gzdirect(file.get())) {
    return NotGzip(path, *bytes);
  }
  return bytes;
}

absl::StatusOr<bool> IsGzip(const std::string& path) {
  ONWARD_ASSIGN_OR_RETURN(const uint64_t size, OrdinaryFileSize(path));
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (file == nullptr) return FileError(path, "cannot be opened", errno);
  std::string start(static_cast<size_t>(std::min<uint64_t>(size, 4)), '\0');
  start.resize(std::fread(start.data(), 1, start.size(), file.get()));
  if (absl::StartsWith(start, "\x1f\x8b")) return true;
  if (absl::EndsWith(path, ".gz")) return NotGzip(path, start);
  return false;
}

absl::Status ReadGzipInPieces(const std::string& path,
                              absl::FunctionRef<absl::Status(absl::string_view)> take) {
  ONWARD_ASSIGN_OR_RETURN(const GzFile file, OpenGzip(path));
  std::string piece(kChunk, '\0');
  while (true) {
    ONWARD_ASSIGN_OR_RETURN(
        const size_t got,
        Unpacked(path, file.get(),
                 gzread(file.get(), piece.data(), static_cast<unsigned>(piece.size()))));
    if (got == 0) return absl::OkStatus();
    ONWARD_RETURN_IF_ERROR(take(absl::string_view(piece.data(), got)));
  }
}

bool FileExists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode);
}

bool IsFolder(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

std::string FirstBytes(absl::string_view bytes, size_t count) {
  if (bytes.empty()) return "nothing: it is empty";
  std::string out;
  for (size_t i = 0; i < std::min(count, bytes.size()); ++i) {
    absl::StrAppendFormat(&out, "%s%02X", i == 0 ? "" : " ", static_cast<unsigned char>(bytes[i]));
  }
  return out;
}

}  // namespace onward
