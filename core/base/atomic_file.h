// SPDX-License-Identifier: Apache-2.0
// Files that appear whole or not at all: written under a temporary name beside
// their target, flushed, renamed. Everything Onward leaves on disk goes this way,
// but for logs, which grow by lines.
#ifndef ONWARD_CORE_BASE_ATOMIC_FILE_H_
#define ONWARD_CORE_BASE_ATOMIC_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace onward {

// The file that writing to `path` replaces or makes: symbolic links are followed,
// because `path` is what a person asked for. An error unless it is an ordinary
// file or nothing yet, in a folder that exists and can be written in.
absl::StatusOr<std::string> WriteTarget(const std::string& path);

class AtomicFile {
 public:
  // A new temporary file beside WriteTarget(path), named ".NAME.onward-XXXXXXXX.tmp".
  // It has the mode of the file it will replace, or what the umask leaves of 0666.
  // Such files that killed processes left for the same target are removed.
  static absl::StatusOr<AtomicFile> Create(const std::string& path);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  // Without Commit nothing stays behind.
  ~AtomicFile();

  // A file that is to stay beside WriteTarget(path), under a name that none had before:
  // CompanionPrefix(path) and eight hexadecimal digits. It takes nothing's place, so what
  // commits it is another file that names it; until Keep it goes away with this object.
  static absl::StatusOr<AtomicFile> CreateCompanion(const std::string& path);

  absl::Status Write(absl::string_view bytes);
  // So many zero bytes, which take no room where the file system has holes.
  absl::Status WriteZeros(int64_t bytes);
  // Flushes to disk and takes the target's place; what was written stands there
  // from now on, also after a loss of power. Call it once.
  absl::Status Commit();

  // Of a companion: to disk, with its name, so that another file may name it.
  absl::Status Flush();
  void Keep() { temporary_.clear(); }
  // The name in its folder.
  std::string name() const;

  int64_t size() const { return size_; }

 private:
  AtomicFile(std::string path, std::string target);
  absl::Status OpenFresh(const std::string& prefix, absl::string_view ending);
  absl::Status FlushBytes();
  absl::Status Error(absl::string_view what) const;

  std::string path_;       // as the caller wrote it, for messages
  std::string target_;     // with links followed
  std::string temporary_;  // "" once nothing is there to remove
  int fd_ = -1;            // locked while this object lives: whoever sweeps leaves it alone
  int64_t size_ = 0;
  bool ends_in_hole_ = false;
};

// "NAME.data-" for a file NAME.
std::string CompanionPrefix(const std::string& target);

// Removes a file unless somebody is writing it.
void RemoveIfAbandoned(const std::string& path);

absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes);

}  // namespace onward

#endif  // ONWARD_CORE_BASE_ATOMIC_FILE_H_
