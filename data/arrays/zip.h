// SPDX-License-Identifier: Apache-2.0
// Reading zip archives (stored and deflated entries, zip64), as numpy.savez writes them. The
// archive is untrusted: every offset and size is checked against the bytes that are there.
#ifndef ONWARD_DATA_ARRAYS_ZIP_H_
#define ONWARD_DATA_ARRAYS_ZIP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/stored_bytes.h"

namespace onward {

struct ZipEntry {
  std::string name;
  int method = 0;  // 0 stored, 8 deflated
  bool encrypted = false;
  uint32_t crc = 0;
  uint64_t packed = 0;
  uint64_t unpacked = 0;
  uint64_t header = 0;  // offset of the local header
};

// The archive's directory.
absl::StatusOr<std::vector<ZipEntry>> ListZip(const StoredBytes& archive);

// The bytes of one entry, which `name` calls in messages: a part of the archive, or what it
// unpacks to. They are read once to compare the checksum.
absl::StatusOr<StoredBytes> OpenZipEntry(const StoredBytes& archive, const ZipEntry& entry,
                                         std::string name);

}  // namespace onward

#endif  // ONWARD_DATA_ARRAYS_ZIP_H_
