// SPDX-License-Identifier: Apache-2.0
// Bytes that are read by position: a file, a part of one, or what a compressed file unpacks
// to. Files are read and not mapped: one that is cut short while it is in use gives an error
// and not a signal, and what was read does not count as memory of the process.
#ifndef ONWARD_DATA_STORED_BYTES_H_
#define ONWARD_DATA_STORED_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/file_descriptor.h"

namespace onward {

// Copies share what they read from. Const functions may be called from several threads.
class StoredBytes {
 public:
  StoredBytes() = default;
  // A file as it is.
  static absl::StatusOr<StoredBytes> Open(const std::string& path);
  // A gzip file is unpacked once, see Unpacking.
  static absl::StatusOr<StoredBytes> OpenPlainOrGzip(const std::string& path);
  static StoredBytes InMemory(std::string bytes, std::string name);
  // The caller keeps the bytes alive.
  static StoredBytes Viewing(absl::string_view bytes, std::string name);

  // What messages call it.
  const std::string& name() const { return name_; }
  uint64_t size() const { return size_; }
  // Bytes [offset, offset + size), which have to be there, under another name.
  StoredBytes Part(uint64_t offset, uint64_t size, std::string name) const;

  // Exactly `count` bytes; an error where they are not there (any more).
  absl::Status Read(uint64_t offset, size_t count, void* to) const;
  absl::StatusOr<std::string> ReadAll() const;
  // The same bytes read into memory now, unless they are more than Unpacking::kMostInMemory.
  absl::StatusOr<StoredBytes> HeldIfSmall() const;
  // The bytes where they are in memory, null otherwise.
  const char* memory() const { return memory_; }

 private:
  friend class Unpacking;
  std::string name_;
  uint64_t begin_ = 0, size_ = 0;
  std::shared_ptr<const FileDescriptor> file_;
  std::shared_ptr<const std::string> owned_;
  const char* memory_ = nullptr;
};

// Takes bytes in pieces and keeps them: in memory while they are few, then in a temporary
// file that has no name and goes away with the last who reads it.
class Unpacking {
 public:
  static constexpr uint64_t kMostInMemory = uint64_t{64} << 20;

  explicit Unpacking(std::string name, uint64_t most_in_memory = kMostInMemory)
      : name_(std::move(name)), most_in_memory_(most_in_memory) {}

  absl::Status Append(absl::string_view piece);
  uint64_t size() const { return size_; }
  absl::StatusOr<StoredBytes> Finish();

 private:
  absl::Status Spill();

  std::string name_;
  uint64_t most_in_memory_, size_ = 0;
  std::string pending_;  // everything, or what the file still lacks
  std::shared_ptr<FileDescriptor> file_;
  uint64_t written_ = 0;
};

}  // namespace onward

#endif  // ONWARD_DATA_STORED_BYTES_H_
