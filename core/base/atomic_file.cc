// SPDX-License-Identifier: Apache-2.0
#include "core/base/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/file_descriptor.h"
#include "core/base/status.h"

namespace onward {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // as the kernel follows
constexpr int kMostAttempts = 100;
constexpr size_t kLongestName = 255;
constexpr size_t kLargestWrite = size_t{1} << 30;
constexpr size_t kRandomLetters = 8;
constexpr absl::string_view kMark = ".onward-", kEnding = ".tmp", kCompanionMark = ".data-";

absl::Status IoError(absl::string_view what, const std::string& path, int error) {
  const std::string message =
      absl::StrCat("cannot ", what, " '", path, "': ", std::strerror(error));
  if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(message);
  if (error == EACCES || error == EPERM || error == EROFS) {
    return absl::PermissionDeniedError(message);
  }
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    return absl::ResourceExhaustedError(message);
  }
  return absl::UnavailableError(message);
}

absl::Status Refused(const std::string& path, const fs::path& target, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "cannot write '", path, "'",
      target == path ? "" : absl::StrCat(" (a link to '", target.string(), "')"), ": ", why));
}

fs::path FolderOf(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

// A name that leaves no room is cut, between two characters of UTF-8.
std::string CutTo(size_t room, std::string name) {
  if (name.size() > room) {
    size_t end = room;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;
    name.resize(end);
  }
  return name;
}

// ".NAME.onward-": how temporary files for this target begin.
std::string TemporaryPrefix(const fs::path& target) {
  const size_t room = kLongestName - 1 - kMark.size() - kRandomLetters - kEnding.size();
  return absl::StrCat(".", CutTo(room, target.filename().string()), kMark);
}

// Removes what processes that were killed left for this target.
void SweepTemporaries(const fs::path& target) {
  const std::string prefix = TemporaryPrefix(target);
  std::error_code error;
  for (fs::directory_iterator it(FolderOf(target), error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.size() != prefix.size() + kRandomLetters + kEnding.size() ||
        !absl::StartsWith(name, prefix) || !absl::EndsWith(name, kEnding)) {
      continue;
    }
    RemoveIfAbandoned(it->path().string());
  }
}

absl::StatusOr<std::string> RandomLetters() {
  uint32_t bits = 0;
  static_assert(2 * sizeof(bits) == kRandomLetters);
  ssize_t got;
  do {
    got = getrandom(&bits, sizeof(bits), 0);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof(bits)) return absl::UnavailableError("the system gives no random numbers");
  return absl::StrFormat("%08x", bits);
}

// Between its making and its locking a file can be swept away.
bool LockUnlessSwept(int fd) {
  while (flock(fd, LOCK_EX) != 0) {
    if (errno != EINTR) return true;  // no locks here, so nobody sweeps either
  }
  struct stat info;
  return fstat(fd, &info) == 0 && info.st_nlink > 0;
}

void FlushFolder(const fs::path& folder) {
  const FileDescriptor dir(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (dir.get() >= 0) fsync(dir.get());
}

}  // namespace

// A living writer holds the lock of its file.
void RemoveIfAbandoned(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info;
  if (file.get() >= 0 && fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode) &&
      flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
    unlink(path.c_str());
  }
}

std::string CompanionPrefix(const std::string& target) {
  std::string name = CutTo(kLongestName - kCompanionMark.size() - kRandomLetters,
                           fs::path(target).filename().string());
  // What readers of models take for a drive, a folder or the end of a line.
  for (char& c : name) {
    if (c == ':' || c == '\\' || static_cast<unsigned char>(c) < ' ') c = '_';
  }
  return absl::StrCat(name, kCompanionMark);
}

absl::StatusOr<std::string> WriteTarget(const std::string& path) {
  fs::path target(path);
  if (!target.has_filename()) return Refused(path, target, "it names a folder, expected a file");
  std::error_code error;
  for (int links = 0; fs::is_symlink(fs::symlink_status(target, error)); ++links) {
    if (links == kMostLinks) return Refused(path, path, "its links lead in a circle");
    const fs::path next = fs::read_symlink(target, error);
    if (error) return IoError("read the link", target.string(), error.value());
    target = next.is_absolute() ? next : FolderOf(target) / next;
  }
  struct stat info;
  if (stat(target.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return Refused(path, target, "it is a folder, expected a file");
    if (!S_ISREG(info.st_mode)) {
      return Refused(path, target, "it exists and is not an ordinary file");
    }
  } else if (errno != ENOENT) {
    return Refused(path, target, std::strerror(errno));
  }
  const fs::path folder = FolderOf(target);
  if (!fs::is_directory(folder, error)) {
    return Refused(path, target, absl::StrCat("the folder '", folder.string(), "' does not exist"));
  }
  if (faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    return Refused(path, target,
                   absl::StrCat("the folder '", folder.string(),
                                "' cannot be written in: ", std::strerror(errno)));
  }
  return target.string();
}

AtomicFile::AtomicFile(std::string path, std::string target)
    : path_(std::move(path)), target_(std::move(target)) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, "")),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      ends_in_hole_(other.ends_in_hole_) {}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
  if (fd_ >= 0) close(fd_);
}

absl::Status AtomicFile::Error(absl::string_view what) const { return IoError(what, path_, errno); }

absl::StatusOr<AtomicFile> AtomicFile::Create(const std::string& path) {
  ONWARD_ASSIGN_OR_RETURN(std::string target, WriteTarget(path));
  SweepTemporaries(target);
  AtomicFile file(path, std::move(target));
  ONWARD_RETURN_IF_ERROR(file.OpenFresh(TemporaryPrefix(file.target_), kEnding));
  return file;
}

absl::StatusOr<AtomicFile> AtomicFile::CreateCompanion(const std::string& path) {
  ONWARD_ASSIGN_OR_RETURN(std::string target, WriteTarget(path));
  AtomicFile file(path, std::move(target));
  ONWARD_RETURN_IF_ERROR(file.OpenFresh(CompanionPrefix(file.target_), ""));
  return file;
}

absl::Status AtomicFile::OpenFresh(const std::string& prefix, absl::string_view ending) {
  struct stat replaced;
  const bool replaces = stat(target_.c_str(), &replaced) == 0;
  const mode_t mode = replaces ? replaced.st_mode & 0777 : 0666;
  const fs::path folder = FolderOf(target_);
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    ONWARD_ASSIGN_OR_RETURN(const std::string letters, RandomLetters());
    const std::string name = (folder / absl::StrCat(prefix, letters, ending)).string();
    fd_ = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd_ < 0 && errno == EEXIST) continue;
    if (fd_ < 0) return Error("write");
    temporary_ = name;
    if (LockUnlessSwept(fd_)) {
      if (replaces && fchmod(fd_, mode) != 0) return Error("set the mode of");
      return absl::OkStatus();
    }
    temporary_.clear();
    close(std::exchange(fd_, -1));
  }
  errno = EEXIST;
  return Error("write");
}

absl::Status AtomicFile::Write(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd_, bytes.data(), std::min(bytes.size(), kLargestWrite));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      if (n == 0) errno = ENOSPC;
      return Error("write");
    }
    bytes.remove_prefix(static_cast<size_t>(n));
    size_ += n;
    ends_in_hole_ = false;
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::WriteZeros(int64_t bytes) {
  if (lseek(fd_, bytes, SEEK_CUR) < 0) return Error("write");
  size_ += bytes;
  ends_in_hole_ = bytes > 0 || ends_in_hole_;
  return absl::OkStatus();
}

absl::Status AtomicFile::FlushBytes() {
  // A hole at the end is none yet.
  if (ends_in_hole_ && ftruncate(fd_, size_) != 0) return Error("write");
  // Some file systems have nothing to flush and say so.
  if (fsync(fd_) != 0 && errno != EINVAL) return Error("flush");
  struct stat info;
  if (fstat(fd_, &info) != 0) return Error("flush");
  if (info.st_size != size_) {
    return absl::DataLossError(absl::StrCat(
        "'", path_, "' was not written completely: ", info.st_size, " of ", size_, " bytes"));
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::Flush() {
  ONWARD_RETURN_IF_ERROR(FlushBytes());
  FlushFolder(FolderOf(target_));
  return absl::OkStatus();
}

std::string AtomicFile::name() const { return fs::path(temporary_).filename().string(); }

absl::Status AtomicFile::Commit() {
  ONWARD_RETURN_IF_ERROR(FlushBytes());
  if (rename(temporary_.c_str(), target_.c_str()) != 0) return Error("replace");
  temporary_.clear();
  FlushFolder(FolderOf(target_));
  return absl::OkStatus();
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes) {
  ONWARD_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  ONWARD_RETURN_IF_ERROR(file.Write(bytes));
  return file.Commit();
}

}  // namespace onward
