// SPDX-License-Identifier: Apache-2.0
// An open file that closes itself.
#ifndef ONWARD_CORE_BASE_FILE_DESCRIPTOR_H_
#define ONWARD_CORE_BASE_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace onward {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

  // Exactly `bytes` bytes from `offset` on; false if they cannot be had.
  bool Read(char* to, size_t bytes, off_t offset) const {
    size_t done = 0;
    while (done < bytes) {
      const ssize_t n = pread(fd_, to + done, bytes - done, offset + static_cast<off_t>(done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      done += static_cast<size_t>(n);
    }
    return true;
  }

 private:
  int fd_;
};

}  // namespace onward

#endif  // ONWARD_CORE_BASE_FILE_DESCRIPTOR_H_
