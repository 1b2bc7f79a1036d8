// SPDX-License-Identifier: Apache-2.0
#include "data/stored_bytes.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "data/file_bytes.h"

namespace onward {
namespace {

constexpr size_t kPiece = size_t{1} << 20;

// A file without a name in the folder for temporary files.
absl::StatusOr<int> OpenTemporary(const std::string& folder) {
  int fd = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0) return fd;
  std::string path = absl::StrCat(folder, "/onward-XXXXXX");  // file systems without O_TMPFILE
  fd = mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) {
    return absl::UnavailableError(
        absl::StrCat("no temporary file can be made in ", folder, ": ", std::strerror(errno)));
  }
  unlink(path.c_str());
  return fd;
}

std::string TemporaryFolder() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  return error ? "/tmp" : folder.string();
}

}  // namespace

absl::StatusOr<StoredBytes> StoredBytes::Open(const std::string& path) {
  ONWARD_ASSIGN_OR_RETURN(const uint64_t size, OrdinaryFileSize(path));
  auto file = std::make_shared<FileDescriptor>(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file->get() < 0) return FileError(path, "cannot be opened", errno);
  StoredBytes bytes;
  bytes.name_ = path;
  bytes.size_ = size;
  bytes.file_ = std::move(file);
  return bytes;
}

absl::StatusOr<StoredBytes> StoredBytes::OpenPlainOrGzip(const std::string& path) {
  ONWARD_ASSIGN_OR_RETURN(const bool packed, IsGzip(path));
  if (!packed) return Open(path);
  Unpacking unpacking(path);
  ONWARD_RETURN_IF_ERROR(
      ReadGzipInPieces(path, [&](absl::string_view piece) { return unpacking.Append(piece); }));
  return unpacking.Finish();
}

StoredBytes StoredBytes::InMemory(std::string bytes, std::string name) {
  auto owned = std::make_shared<const std::string>(std::move(bytes));
  StoredBytes stored = Viewing(*owned, std::move(name));
  stored.owned_ = std::move(owned);
  return stored;
}

StoredBytes StoredBytes::Viewing(absl::string_view bytes, std::string name) {
  StoredBytes stored;
  stored.name_ = std::move(name);
  stored.size_ = bytes.size();
  stored.memory_ = bytes.data() == nullptr ? "" : bytes.data();
  return stored;
}

StoredBytes StoredBytes::Part(uint64_t offset, uint64_t size, std::string name) const {
  CheckInvariant(offset <= size_ && size <= size_ - offset, "a part lies within its bytes");
  StoredBytes part = *this;
  part.name_ = std::move(name);
  part.begin_ += offset;
  part.size_ = size;
  if (memory_ != nullptr) part.memory_ += offset;
  return part;
}

absl::Status StoredBytes::Read(uint64_t offset, size_t count, void* to) const {
  if (offset > size_ || count > size_ - offset) {
    return absl::DataLossError(absl::StrCat(name_, ": ends early: bytes ", offset, " to ",
                                            offset + count, " of ", size_, " are asked for"));
  }
  if (count == 0) return absl::OkStatus();
  if (memory_ != nullptr) {
    std::memcpy(to, memory_ + offset, count);
    return absl::OkStatus();
  }
  if (file_->Read(static_cast<char*>(to), count, static_cast<off_t>(begin_ + offset))) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(name_, ": cannot be read at byte ", begin_ + offset,
                                          "; it has to stay as it is while it is in use"));
}

absl::StatusOr<std::string> StoredBytes::ReadAll() const {
  ONWARD_RETURN_IF_ERROR(CheckFitsInMemory(name_, size_));
  std::string bytes(static_cast<size_t>(size_), '\0');
  ONWARD_RETURN_IF_ERROR(Read(0, bytes.size(), bytes.data()));
  return bytes;
}

absl::StatusOr<StoredBytes> StoredBytes::HeldIfSmall() const {
  if (memory_ != nullptr || size_ > Unpacking::kMostInMemory) return *this;
  ONWARD_ASSIGN_OR_RETURN(std::string bytes, ReadAll());
  return InMemory(std::move(bytes), name_);
}

absl::Status Unpacking::Append(absl::string_view piece) {
  pending_.append(piece.data(), piece.size());
  size_ += piece.size();
  const bool keeps = file_ == nullptr ? size_ <= most_in_memory_ : pending_.size() < kPiece;
  return keeps ? absl::OkStatus() : Spill();
}

absl::Status Unpacking::Spill() {
  const std::string folder = TemporaryFolder();
  if (file_ == nullptr) {
    auto fd = OpenTemporary(folder);
    if (!fd.ok()) return Annotate(fd.status(), absl::StrCat(name_, ": cannot be unpacked"));
    file_ = std::make_shared<FileDescriptor>(*fd);
  }
  for (size_t done = 0; done < pending_.size();) {
    const ssize_t n = pwrite(file_->get(), pending_.data() + done, pending_.size() - done,
                             static_cast<off_t>(written_));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat(name_, ": cannot be unpacked to a temporary file in ", folder, " (",
                       std::strerror(errno), " after ", written_,
                       " bytes); name a folder with more room in TMPDIR, or unpack it yourself"));
    }
    done += static_cast<size_t>(n);
    written_ += static_cast<uint64_t>(n);
  }
  pending_ = std::string();
  return absl::OkStatus();
}

absl::StatusOr<StoredBytes> Unpacking::Finish() {
  if (file_ == nullptr) return StoredBytes::InMemory(std::move(pending_), name_);
  if (!pending_.empty()) ONWARD_RETURN_IF_ERROR(Spill());
  StoredBytes bytes;
  bytes.name_ = name_;
  bytes.size_ = size_;
  bytes.file_ = std::move(file_);
  return bytes;
}

}  // namespace onward
