// SPDX-License-Identifier: Apache-2.0
// Whole files as bytes, read with the size checked before memory is taken.
#ifndef ONWARD_DATA_FILE_BYTES_H_
#define ONWARD_DATA_FILE_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace onward {

// An error unless `bytes` fit into this machine's memory. `what` begins the
// message.
absl::Status CheckFitsInMemory(absl::string_view what, uint64_t bytes);

// "PATH: WHAT: the system's reason", with the code that fits it.
absl::Status FileError(const std::string& path, absl::string_view what, int error);

// The size of an ordinary file. Pipes and devices are refused before opening them could wait
// for ever.
absl::StatusOr<uint64_t> OrdinaryFileSize(const std::string& path);
// The same of a file that would fit into memory.
absl::StatusOr<size_t> ReadableSize(const std::string& path);

// The bytes of a file as they are.
absl::StatusOr<std::string> ReadFileBytes(const std::string& path);

// The bytes of a file, decompressed if it is a gzip file.
absl::StatusOr<std::string> ReadPlainOrGzip(const std::string& path);
// Whether a file is compressed by gzip; an error where its name alone says so.
absl::StatusOr<bool> IsGzip(const std::string& path);
// Hands on what a gzip file unpacks to, piece by piece.
absl::Status ReadGzipInPieces(const std::string& path,
                              absl::FunctionRef<absl::Status(absl::string_view)> take);

bool FileExists(const std::string& path);
bool IsFolder(const std::string& path);

// "00 00 08 03": what a file starts with, for messages.
std::string FirstBytes(absl::string_view bytes, size_t count = 4);

}  // namespace onward

#endif  // ONWARD_DATA_FILE_BYTES_H_
